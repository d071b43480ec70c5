//! The Markdown context of a position in a text.

use super::{cursor::is_separator, form::RecoveryForm};

/// Minimum number of backticks or tildes that open a block of code.
const FENCE: usize = 3;
/// Marks around thinking that a server left in the text. Calls in it are ignored.
const THINKING_OPENERS: [&str; 2] = ["<think>", "[THINK]"];
const THINKING_CLOSERS: [&str; 2] = ["</think>", "[/THINK]"];

/// Markdown code. Calls in it are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    None,
    /// A span that a run of this many backticks closes. A span of one or two backticks also ends
    /// with its paragraph: a backtick may stand alone.
    Span(usize),
    /// A block that a line of at least this many marks closes.
    Block {
        mark: char,
        length: usize,
    },
}

/// Consecutive backticks or tildes.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    mark: char,
    /// 0 if there is no run.
    length: usize,
    /// Only white space precedes it in its line.
    is_first: bool,
}

/// The context of a position: whether a call may begin there.
#[derive(Debug)]
pub(crate) struct MarkdownContext {
    /// The line has only white space so far.
    line_is_blank: bool,
    /// The line begins with `>`.
    line_is_quoted: bool,
    /// The last character that is not white space.
    before: Option<char>,
    code: Code,
    /// The run that the next character may continue.
    run: Run,
    /// The current line opened the block of code.
    opens_block: bool,
    /// The line may close the block of code: it is only a run so far.
    closes_block: bool,
    in_thinking: bool,
    /// Only white space and separators since a call.
    after_call: bool,
    /// The answer has text outside of thinking and calls.
    has_text: bool,
}

impl MarkdownContext {
    /// Returns the context at the beginning of a text. `has_text`: the answer has other text
    /// before.
    pub(crate) fn new(has_text: bool) -> Self {
        Self {
            line_is_blank: true,
            line_is_quoted: false,
            before: None,
            code: Code::None,
            run: Run::default(),
            opens_block: false,
            closes_block: false,
            in_thinking: false,
            after_call: false,
            has_text,
        }
    }

    /// Whether a call in this form may begin with `c` here.
    ///
    /// Calls in code and in quoted lines are examples. The exception is a block of code that is
    /// itself the call: the answer must have no other text.
    pub(crate) fn may_begin(&self, form: RecoveryForm, c: char) -> bool {
        let is_example = self.line_is_quoted || self.code_after_run() != Code::None;
        if self.in_thinking || is_example {
            return false;
        }
        match (form, c) {
            (RecoveryForm::FencedJson, '`') => !self.has_text && self.run.length == 0,
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

    /// Whether this is the beginning of a line, and not within JSON that is not a call.
    fn may_begin_unmarked(&self) -> bool {
        let in_json = matches!(self.before, Some('{' | '[' | ','));
        self.line_is_blank && !in_json
    }

    /// Advances over the thinking mark at the beginning of `rest`, else over its first character.
    /// Returns the length in bytes.
    pub(crate) fn step(&mut self, rest: &str) -> usize {
        let mut marks = self.thinking_marks().into_iter();
        // A mark in code is an example.
        let in_code = !self.in_thinking && self.code_after_run() != Code::None;
        if let Some(mark) = marks.find(|mark| !in_code && rest.starts_with(mark)) {
            self.end_run();
            self.in_thinking = !self.in_thinking;
            self.line_is_blank = false;
            self.before = None;
            self.after_call = false;
            return mark.len();
        }
        let Some(c) = rest.chars().next() else {
            return 0;
        };
        let is_between_calls = self.after_call && is_separator(c);
        if !self.in_thinking && !is_between_calls {
            self.after_call &= c.is_whitespace();
            self.step_in_code(c);
            self.has_text |= !c.is_whitespace();
        }
        if c == '\n' {
            self.line_is_blank = true;
            self.line_is_quoted = false;
        } else if !c.is_whitespace() && !self.after_call {
            self.line_is_quoted |= self.line_is_blank && c == '>';
            self.line_is_blank = false;
            self.before = Some(c);
        }
        c.len_utf8()
    }

    /// Whether a text is the beginning of a thinking mark, so that more of it is needed.
    pub(crate) fn may_be_mark(&self, text: &str) -> bool {
        let mut marks = self.thinking_marks().into_iter();
        marks.any(|mark| mark.len() > text.len() && mark.starts_with(text))
    }

    fn thinking_marks(&self) -> [&'static str; 2] {
        if self.in_thinking {
            THINKING_CLOSERS
        } else {
            THINKING_OPENERS
        }
    }

    /// Whether the answer has text outside of thinking and calls.
    pub(crate) fn has_text(&self) -> bool {
        self.has_text
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
        self.code = self.code_after_run();
        self.run = Run::default();
        match (before, self.code) {
            (Code::None, Code::Block { .. }) => self.opens_block = true,
            (_, Code::Block { mark, length }) => {
                self.closes_block = run.is_first && run.mark == mark && run.length >= length;
            }
            _ => {}
        }
    }

    /// Returns the code context if the run ends here.
    fn code_after_run(&self) -> Code {
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
            // Backticks in the line that opens a block: it is a span.
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

    /// Advances over a call.
    pub(crate) fn step_over_call(&mut self) {
        *self = Self {
            after_call: true,
            ..Self::new(self.has_text)
        };
    }
}
