//! The HTTP server and the web page: runs as events that any client reads, in five dialects.
#![deny(missing_docs)]
