"""The system on one machine: the store, the queue and the bucket in one directory, and what drives them."""
