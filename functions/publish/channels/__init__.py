"""Where approved drafts go."""
