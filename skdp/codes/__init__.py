"""In which coordinates noise is added: learned from pilot pairs."""
