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
        arguments::CallArguments,
        media::DataUrl,
        usage::{CacheWriteDetails, InputDetails, OutputDetails},
    },
};
