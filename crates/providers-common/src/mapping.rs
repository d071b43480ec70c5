//! Code that all provider adapters share to build requests and to convert answers into events.

pub mod answer_events;
pub mod body_fields;
pub mod content_warnings;
pub mod joined_text;
pub mod media;
pub mod opaque_text;
pub mod request;
pub mod result_text;
pub mod tool_use_ids;
pub mod tool_use_input;
pub mod user_location;
pub mod warnings;
