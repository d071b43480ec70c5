//! Where in a text a place is.

use super::form::RecoveryForm;

/// Backticks or tildes that open a block of code.
const FENCE: usize = 3;
/// Marks around thinking that a server left in the text. Nothing in it is called.
const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("[THINK]", "[/THINK]")];
const LONGEST_MARK: usize = 8;

/// What may stand between two calls, beside blanks: Llama 3.1 writes semicolons.
pub(crate) fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

/// Code in Markdown, in which nothing is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    None,
    /// A span that a run of so many backticks closes. One of one or two also ends with its paragraph: a
    /// backtick may stand alone.
    Span(usize),
    /// A block that a line of so many of these characters, or more, closes.
    Block {
        mark: char,
        length: usize,
    },
}

/// Backticks or tildes in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    mark: char,
    /// 0 if there is none.
    length: usize,
    /// Only blanks stand before it in its line.
    is_first: bool,
}

/// Where in a text a place is: what a form must know before it begins.
#[derive(Debug)]
pub(crate) struct Place {
    /// Only blanks since the line began.
    line_is_blank: bool,
    /// The line begins with `>`.
    line_is_quoted: bool,
    /// The character that is no blank before.
    before: Option<char>,
    code: Code,
    /// The run that may go on with the next character.
    run: Run,
    /// The line in which the block of code was opened goes on.
    opens_block: bool,
    /// The line may close the block of code: it is a run and nothing else until now.
    closes_block: bool,
    in_thoughts: bool,
    /// Nothing but blanks and separators since a call.
    behind_call: bool,
    /// Something was said outside of thinking that is not a call.
    has_said: bool,
    /// The last characters.
    tail: String,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            line_is_blank: true,
            line_is_quoted: false,
            before: None,
            code: Code::None,
            run: Run::default(),
            opens_block: false,
            closes_block: false,
            in_thoughts: false,
            behind_call: false,
            has_said: false,
            tail: String::new(),
        }
    }
}

impl Place {
    /// Returns the beginning of a text. `has_said` if the answer said something before it.
    pub(crate) fn beginning(has_said: bool) -> Self {
        Self {
            has_said,
            ..Self::default()
        }
    }

    /// Whether a call in this form may begin with `c` here.
    ///
    /// Code and quoted lines show calls and make none. The exception is a block of code that is itself
    /// the call: it must be all that the answer says.
    pub(crate) fn may_begin(&self, form: RecoveryForm, c: char) -> bool {
        let is_shown = self.line_is_quoted || self.code_behind_run() != Code::None;
        if self.in_thoughts || is_shown {
            return false;
        }
        match (form, c) {
            (RecoveryForm::FencedJson, '`') => !self.has_said && self.run.length == 0,
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

    /// At the beginning of a line, and not within JSON that is no call.
    fn may_begin_unmarked(&self) -> bool {
        let in_json = matches!(self.before, Some('{' | '[' | ','));
        self.line_is_blank && !in_json
    }

    /// Steps over a character.
    pub(crate) fn step(&mut self, c: char) {
        if self.behind_call && is_separator(c) {
            return;
        }
        self.behind_call &= c.is_whitespace();
        let was_thought = self.in_thoughts;
        if !was_thought {
            self.step_in_code(c);
        }
        if c == '\n' {
            self.line_is_blank = true;
            self.line_is_quoted = false;
        } else if !c.is_whitespace() {
            self.line_is_quoted |= self.line_is_blank && c == '>';
            self.line_is_blank = false;
            self.before = Some(c);
        }
        let was_mark = self.is_mark_begun();
        self.think(c);
        if was_thought || self.in_thoughts {
            return;
        }
        // What may become the mark of a thought is not said yet.
        let is_said = was_mark || !c.is_whitespace();
        self.has_said |= is_said && !self.is_mark_begun();
    }

    /// Marks the text so far as said, such as calls that were not taken for calls.
    pub(crate) fn says(&mut self) {
        self.has_said = true;
    }

    fn step_in_code(&mut self, c: char) {
        let is_mark = matches!(c, '`' | '~');
        if is_mark && self.run.length > 0 && self.run.mark == c {
            self.run.length += 1;
            return;
        }
        self.end_run();
        if is_mark {
            self.run = Run {
                mark: c,
                length: 1,
                is_first: self.line_is_blank,
            };
        } else if c == '\n' {
            let is_short_span = matches!(self.code, Code::Span(length) if length < FENCE);
            let ends_paragraph = self.line_is_blank && is_short_span;
            if std::mem::take(&mut self.closes_block) || ends_paragraph {
                self.code = Code::None;
            }
            self.opens_block = false;
        } else if !c.is_whitespace() {
            self.closes_block = false;
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.length == 0 {
            return;
        }
        let before = self.code;
        self.run = run;
        self.code = self.code_behind_run();
        self.run = Run::default();
        match (before, self.code) {
            (Code::None, Code::Block { .. }) => self.opens_block = true,
            (_, Code::Block { mark, length }) => {
                self.closes_block = run.is_first && run.mark == mark && run.length >= length;
            }
            _ => {}
        }
    }

    /// Returns the code that the place is in if the run ends here.
    fn code_behind_run(&self) -> Code {
        let Run {
            mark,
            length,
            is_first,
        } = self.run;
        let is_ticks = mark == '`';
        match self.code {
            code if length == 0 => code,
            Code::None if is_first && length >= FENCE => Code::Block { mark, length },
            Code::None if is_ticks => Code::Span(length),
            Code::Span(open) if is_ticks && open == length => Code::None,
            // Backticks in the line that opens a block: it was a span.
            Code::Block {
                mark: '`',
                length: open,
            } if self.opens_block && is_ticks => {
                if open == length {
                    Code::None
                } else {
                    Code::Span(open)
                }
            }
            code => code,
        }
    }

    /// Steps over a call.
    pub(crate) fn after_call(&mut self) {
        *self = Self {
            behind_call: true,
            ..Self::beginning(self.has_said)
        };
    }

    fn is_mark_begun(&self) -> bool {
        let tail = self.tail.as_str();
        let mut marks = THOUGHTS.iter().map(|(begin, _)| begin);
        !tail.is_empty() && marks.any(|begin| begin.starts_with(tail))
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
        // In code a mark is shown.
        let in_code = self.code != Code::None;
        if THOUGHTS.iter().any(|(begin, _)| *begin == tail) {
            self.in_thoughts |= !in_code;
        } else if THOUGHTS.iter().any(|(_, end)| *end == tail) {
            self.in_thoughts = false;
        }
    }
}
