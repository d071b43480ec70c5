//! Parts of the request and answer mapping that all provider APIs share.

pub mod answer_events;
pub mod body_fields;
pub mod joined_text;
pub mod local_ids;
pub mod media;
pub mod opaque_text;
pub mod request;
pub mod result_text;
pub mod warnings;
