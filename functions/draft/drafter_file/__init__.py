"""What a drafter's file may say, shape by shape."""
