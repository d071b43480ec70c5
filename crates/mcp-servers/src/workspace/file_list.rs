//! `file_list`.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking,
    folder::Kind,
    path::Access,
    root::Root,
    text::{counted, sized},
    walk::{Walk, matches},
};
use crate::tool::{BundledTool, ToolError, ToolOutput};

/// Maximum number of listed entries.
const MAX_ENTRIES: usize = 500;

pub(super) struct FileList {
    pub(in crate::workspace) root: Arc<Root>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The folder to list, from the root folder down. Without it the root folder itself.
    #[serde(default)]
    path: String,
    /// Whether to list what is in the folders below, too. Folders such as `node_modules` and `target`
    /// are named but not entered.
    #[serde(default)]
    recursive: bool,
    /// Lists only files whose name fits this pattern, such as *.rs; * stands for any characters, ?
    /// for one.
    #[serde(rename = "match")]
    pattern: Option<String>,
    /// Whether to list hidden files and folders, too.
    #[serde(default)]
    hidden: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    path: String,
    entries: Vec<Entry>,
    /// There are more than are listed.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Entry {
    /// From the root folder down.
    path: String,
    kind: EntryKind,
    /// The size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    bytes: Option<u64>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryKind {
    File,
    Folder,
    Link,
    Special,
}

impl From<Kind> for EntryKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Folder => Self::Folder,
            Kind::Link => Self::Link,
            Kind::Special => Self::Special,
        }
    }
}

impl BundledTool for FileList {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "file_list";
    const TITLE: &'static str = "List files";
    const DESCRIPTION: &'static str = "Lists the files and folders in a folder, or everything below \
        it, with sizes. Use it to find out what there is and what it is called.";

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let root = Arc::clone(&self.root);
        blocking(move || list(&root, &input)).await
    }
}

fn list(root: &Root, input: &Input) -> Result<ToolOutput<Output>, ToolError> {
    let path = root.parse(&input.path, Access::Read)?;
    let walk = Walk {
        recursive: input.recursive,
        hidden: input.hidden,
    };
    let mut entries = Vec::new();
    let complete = walk.run(root, &path, |found| {
        let is_match = match &input.pattern {
            Some(pattern) => found.kind == Kind::File && matches(pattern, found.path.name()),
            None => true,
        };
        if is_match && entries.len() < MAX_ENTRIES {
            entries.push(Entry {
                path: found.path.to_string(),
                kind: found.kind.into(),
                bytes: (found.kind == Kind::File).then_some(found.size),
            });
            return true;
        }
        !is_match
    })?;
    let number = match entries.len() {
        0 if input.pattern.is_some() => "nothing that fits".to_owned(),
        0 => "nothing".to_owned(),
        number => counted(number, "entry"),
    };
    let end = if entries.is_empty() { "." } else { ":" };
    let mut text = format!("{path} has {number}{end}");
    for entry in &entries {
        // Writing to a string cannot fail.
        let _ = match (entry.kind, entry.bytes) {
            (EntryKind::File, Some(bytes)) => {
                write!(text, "\n{} ({})", entry.path, sized(bytes))
            }
            (EntryKind::Folder, _) => write!(text, "\n{}/", entry.path),
            (EntryKind::Link, _) => write!(text, "\n{} (a link, not followed)", entry.path),
            _ => write!(text, "\n{} (neither file nor folder)", entry.path),
        };
    }
    if !complete {
        text.push_str("\nThere are more. List a folder further down, or give a pattern.");
    }
    Ok(ToolOutput {
        text,
        data: Output {
            path: path.to_string(),
            entries,
            truncated: !complete,
        },
    })
}
