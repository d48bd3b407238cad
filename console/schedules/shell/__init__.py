"""Shell text: parsed by the bash grammar of tree-sitter, and followed without running anything. Pure."""
