"""What must hold before and after the steps of playbooks, and what steps wait for. Checks change nothing."""
