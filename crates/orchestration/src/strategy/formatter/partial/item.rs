//! An item of a streamed answer.

use super::writer::{Opening, Sink};
use crate::strategy::formatter::{
    items::{Kind, title_of},
    render::{Block, kind, takes_language},
};

/// An incomplete item.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) kind: Option<Kind>,
    pub(super) artifact_type: Option<String>,
    pub(super) title: Option<String>,
    pub(super) language: Option<String>,
    /// Content before the keys that are needed to emit it.
    pub(super) held: String,
    pub(super) is_shown: bool,
}

impl Item {
    /// Starts to emit the item if the needed keys are known.
    pub(super) fn try_to_show(&mut self, sink: &mut Sink<'_>) {
        if self.is_shown {
            return;
        }
        let opening = match &self.kind {
            None => return,
            Some(Kind::Text) => Opening::Text,
            Some(Kind::Artifact | Kind::ArtifactOf(_)) => {
                let ((Some(artifact_type), _) | (None, Some(Kind::ArtifactOf(artifact_type)))) =
                    (&self.artifact_type, &self.kind)
                else {
                    return;
                };
                let needs_language = takes_language(&kind(artifact_type));
                match &self.title {
                    Some(title) if !needs_language || self.language.is_some() => Opening::Artifact(
                        Block::new(artifact_type, title, self.language.as_deref()),
                    ),
                    _ => return,
                }
            }
        };
        self.show(opening, sink);
    }

    fn show(&mut self, opening: Opening, sink: &mut Sink<'_>) {
        self.is_shown = true;
        sink.begin(opening);
        sink.text(&std::mem::take(&mut self.held));
    }

    /// Emits the rest of a complete item.
    pub(super) fn finish(mut self, sink: &mut Sink<'_>) {
        if !self.is_shown && !self.held.trim().is_empty() {
            let is_artifact = match &self.kind {
                None => {
                    self.artifact_type.is_some() || self.language.is_some() || self.title.is_some()
                }
                Some(kind) => *kind != Kind::Text,
            };
            let opening = if is_artifact {
                let artifact_type = match (self.artifact_type.take(), &self.kind) {
                    (Some(given), _) => given,
                    (None, Some(Kind::ArtifactOf(word))) => word.clone(),
                    (None, _) if self.language.is_some() => "code".to_owned(),
                    (None, _) => "text/markdown".to_owned(),
                };
                let title = self.title.take();
                let title = title.unwrap_or_else(|| title_of(&artifact_type, &self.held));
                Opening::Artifact(Block::new(&artifact_type, &title, self.language.as_deref()))
            } else {
                Opening::Text
            };
            self.show(opening, sink);
        }
        sink.end();
    }
}
