"""Where drafters read: mail, tables and documents in a bucket, feeds and health checks on the web.

A source returns what is new since its cursor, what it could not read, and the cursor's next value. It never
moves a cursor itself: the value is stored in the transaction that stores the draft.
"""
