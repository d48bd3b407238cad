"""What the steps of a plan do, one module for each kind."""
