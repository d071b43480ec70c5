//! What servers offer beside tools: resources, prompts, completions, pages of MCP Apps; and calls that
//! become tasks.
//!
//! Everything is asked for by the server's name in the configuration, when it is wanted: nothing is asked
//! of a server of which nobody wants it. What is read is read leniently: one bad item is left out alone.

mod apps;
mod ask;
mod completions;
mod error;
mod lists;
mod pages;
mod prompts;
mod resources;
pub(crate) mod tasks;
mod updates;

pub(crate) use self::{
    apps::Audience,
    ask::send,
    lists::{Freshness, Hint, ListKind, Lists},
    tasks::{TaskNews, offered},
    updates::{Subscribed, Told},
};
pub use self::{
    apps::{APP_MEDIA_TYPE, App, AppPage},
    completions::{Completion, CompletionOf, CompletionRequest},
    error::FeatureError,
    pages::Listing,
    prompts::{Prompt, PromptArgument, PromptMessage, PromptRole, RenderedPrompt},
    resources::{Resource, ResourceBody, ResourceContent, ResourceTemplate},
    updates::{ResourceUpdate, ResourceUpdates},
};
