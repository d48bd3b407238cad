"""What changes the world: plan, show, confirm, apply, verify, audit, undo."""
