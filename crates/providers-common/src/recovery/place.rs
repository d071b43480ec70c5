//! Where in a text a place is.

use super::form::RecoveryForm;

const FENCE_TICKS: u8 = 3;
/// Marks around thinking that a server left in the text. Nothing in it is called.
const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("[THINK]", "[/THINK]")];
const LONGEST_MARK: usize = 8;

/// What may stand between two calls, beside blanks: Llama 3.1 writes semicolons.
pub(crate) fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

/// Where in a text a place is: what a form without a mark of its own must know before it begins.
#[derive(Debug)]
pub(crate) struct Place {
    /// Only blanks since the line began.
    line_is_blank: bool,
    /// The character that is no blank before.
    before: Option<char>,
    /// Backticks at the beginning of the line.
    ticks: u8,
    in_fence: bool,
    in_thoughts: bool,
    /// Nothing but blanks and separators since a call.
    behind_call: bool,
    /// The last characters.
    tail: String,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            line_is_blank: true,
            before: None,
            ticks: 0,
            in_fence: false,
            in_thoughts: false,
            behind_call: false,
            tail: String::new(),
        }
    }
}

impl Place {
    /// Whether a call in this form may begin with `c` here.
    pub(crate) fn may_begin(&self, form: RecoveryForm, c: char) -> bool {
        if self.in_thoughts {
            return false;
        }
        match (form, c) {
            (RecoveryForm::FencedJson, '`') => !self.in_fence && self.ticks == 0,
            (RecoveryForm::MistralToken, '[')
            | (
                RecoveryForm::ToolCallTag
                | RecoveryForm::FunctionTag
                | RecoveryForm::DeepSeek
                | RecoveryForm::Granite
                | RecoveryForm::Pythonic
                | RecoveryForm::BareJson,
                '<',
            ) => true,
            (RecoveryForm::Pythonic, '[') | (RecoveryForm::BareJson, '{' | '[') => {
                self.may_begin_unmarked()
            }
            _ => false,
        }
    }

    /// At the beginning of a line, outside of Markdown blocks, and not within JSON that is no call.
    fn may_begin_unmarked(&self) -> bool {
        let in_json = matches!(self.before, Some('{' | '[' | ','));
        self.line_is_blank && !self.in_fence && !in_json
    }

    /// Steps over a character.
    pub(crate) fn step(&mut self, c: char) {
        if self.behind_call && is_separator(c) {
            return;
        }
        self.behind_call &= c.is_whitespace();
        match c {
            '\n' => {
                self.line_is_blank = true;
                self.ticks = 0;
            }
            '`' if self.line_is_blank || (1..FENCE_TICKS).contains(&self.ticks) => {
                self.line_is_blank = false;
                self.ticks += 1;
                if self.ticks == FENCE_TICKS {
                    self.in_fence = !self.in_fence;
                }
            }
            c if c.is_whitespace() => {}
            _ => {
                self.line_is_blank = false;
                if self.ticks < FENCE_TICKS {
                    self.ticks = 0;
                }
            }
        }
        if !c.is_whitespace() {
            self.before = Some(c);
        }
        self.think(c);
    }

    /// Steps over a call.
    pub(crate) fn after_call(&mut self) {
        *self = Self {
            in_fence: self.in_fence,
            behind_call: true,
            ..Self::default()
        };
    }

    fn think(&mut self, c: char) {
        if matches!(c, '<' | '[') {
            self.tail.clear();
        }
        if self.tail.len() >= LONGEST_MARK || (self.tail.is_empty() && !matches!(c, '<' | '[')) {
            return;
        }
        self.tail.push(c);
        let tail = self.tail.as_str();
        if THOUGHTS.iter().any(|(begin, _)| *begin == tail) {
            self.in_thoughts = true;
        } else if THOUGHTS.iter().any(|(_, end)| *end == tail) {
            self.in_thoughts = false;
        }
    }
}
