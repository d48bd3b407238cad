"""What the steps of playbooks do: each action makes plans of console.actions and changes nothing by itself."""
