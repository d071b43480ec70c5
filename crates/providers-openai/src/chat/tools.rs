//! Tools and the tool choice in the form of this API.

use super::wire::{AllowedTools, FunctionTool, Tool, ToolChoice};
use crate::tools::{
    self,
    provider_tools::{NamedTool, ToolForm},
};

impl<'a> From<tools::Function<'a>> for Tool<'a> {
    fn from(function: tools::Function<'a>) -> Self {
        Self::Function {
            function: FunctionTool {
                name: function.name,
                description: function.description,
                parameters: function.parameters,
                strict: function.strict.then_some(true),
            },
        }
    }
}

impl<'a> From<tools::Choice<'a>> for ToolChoice<'a> {
    fn from(choice: tools::Choice<'a>) -> Self {
        let named = |tool| NamedTool::new(tool, ToolForm::Nested);
        match choice {
            tools::Choice::Mode(mode) => Self::Mode(mode),
            tools::Choice::One(tool) => Self::Named(named(tool)),
            tools::Choice::Allowed(tools) => Self::AllowedTools {
                r#type: "allowed_tools",
                allowed_tools: AllowedTools {
                    mode: "required",
                    tools: tools.into_iter().map(named).collect(),
                },
            },
        }
    }
}
