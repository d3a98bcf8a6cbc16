"""What keeper and client say to each other: one JSON object a line, over a unix stream socket.

A request is `{"do": VERB, ...}` and gets one reply, in order: `{"record": ...}`, `{"done": true}`,
`{"records": [...], "next": ID}` or `{"error": KIND, "message": TEXT}`. Verbs: prepare {spec},
release {container_id}, abort {container_id}, list {after}, signal {container_id, signum},
forget {container_id}, watch. After `watch` the keeper also sends `{"changed": record}` on its own. Whoever
prepares a container owns it until it is released: if the connection ends before, the container ends too.
"""

MAX_REQUEST_BYTES = 1024 * 1024
# a client that does not read is cut off here; it finds everything again when it comes back
MAX_UNREAD_BYTES = 4 * 1024 * 1024
LIST_PAGE_BYTES = 256 * 1024

PREPARE, RELEASE, ABORT = "prepare", "release", "abort"
LIST, SIGNAL, FORGET, WATCH = "list", "signal", "forget", "watch"

# kinds of errors
BAD_REQUEST = "BadRequest"
BUSY = "Busy"
NOT_FOUND = "NotFound"
NOT_RUNNING = "NotRunning"
START_ERROR = "StartError"

# states of a container; of the first no client is told
PREPARING, CREATED, RUNNING, EXITED = "preparing", "created", "running", "exited"
