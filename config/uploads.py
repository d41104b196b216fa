"""The settings of what people attach, and of how much a request may bring. Part of `config.settings`."""

from config.environment import Env

_env = Env()

# What people may attach to a message: how many files, how large each and all together (bytes), how much of their text
# the model reads (characters), and how much is kept of one user (bytes; 0 sets no limit). Pictures are kept with so
# many pixels on their longer side; one with more pixels in all is not decoded.
WAYMARK_ATTACHMENTS_PER_MESSAGE = _env.int("WAYMARK_ATTACHMENTS_PER_MESSAGE", default=10)
WAYMARK_ATTACHMENT_BYTES = _env.int("WAYMARK_ATTACHMENT_BYTES", default=10_000_000)
WAYMARK_ATTACHMENTS_BYTES = _env.int("WAYMARK_ATTACHMENTS_BYTES", default=20_000_000)
WAYMARK_ATTACHED_TEXT = _env.int("WAYMARK_ATTACHED_TEXT", default=60_000)
WAYMARK_ATTACHMENT_QUOTA = _env.int("WAYMARK_ATTACHMENT_QUOTA", default=2_000_000_000)
WAYMARK_IMAGE_SIDE = _env.int("WAYMARK_IMAGE_SIDE", default=2_000)
WAYMARK_IMAGE_PIXELS = _env.int("WAYMARK_IMAGE_PIXELS", default=50_000_000)

# What the web server reads at all of a request's body, and of one that brings files. Bytes.
WAYMARK_LARGEST_BODY = 2_500_000
WAYMARK_LARGEST_UPLOAD = WAYMARK_ATTACHMENTS_BYTES + WAYMARK_LARGEST_BODY
