//! The serde types of the Responses API. Request types borrow from the domain request. Response
//! types accept unknown, missing and mistyped fields.

mod request;
mod response;

pub use request::{
    Body, Content, InputPart, Item, JsonSchema, OutputContent, Reasoning, Role, TextOptions,
    TypedItem,
};
pub use response::{Event, IncompleteDetails, Response, UsageReport};

pub use crate::{
    tools::provider_tools::DeclaredTools,
    wire::{
        call_arguments::CallArguments,
        media::MediaUrl,
        usage::{CacheWriteDetails, InputTokenDetails, OutputTokenDetails},
    },
};
