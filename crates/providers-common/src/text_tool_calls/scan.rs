//! One text, cut into what is said and what is called.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    call::{Found, FoundCall},
    form::{RecoveryForm, RecoveryForms},
    forms::{self, Judgement, Reading},
    known::Known,
    place::{Place, is_separator},
    reader::{Source, Stop},
};

/// Bytes of a text that turned out to be no call in which another one may begin. Beyond it the text
/// is let go whole: a text is never read again and again.
const READ_AGAIN: usize = 512;

/// What a text is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Call(FoundCall),
}

/// Looks for calls in a text that arrives in pieces.
///
/// Wherever a call could begin, a parser of each form that begins so is started, and the text is held
/// back while one of them is at work. The first to have a call (by the characters that it needed) wins.
/// When all have given up, the text is let go.
///
/// A call in a block of Markdown is one only if the answer says nothing beside it. It is held back, with
/// what comes behind it, until the text says something or ends.
pub(crate) struct TextScan {
    known: Arc<Known>,
    forms: RecoveryForms,
    /// Bytes that are held back at most.
    limit: usize,
    source: Source,
    /// What comes before is let go.
    start: usize,
    has_ended: bool,
    readings: Vec<Reading>,
    judged: Vec<Judgement>,
    place: Place,
    /// Blanks at the beginning or behind a call. They say nothing if a call is what comes next.
    blanks: String,
    only_blanks: bool,
    after_call: bool,
    /// Blocks that are calls if nothing is said beside them, and what stands between and behind them.
    held: Vec<Held>,
    /// Bytes in `held`.
    held_bytes: usize,
}

/// A part of a text that waits for what comes behind it.
enum Held {
    /// A block, and the calls that it is if nothing is said.
    Block { text: String, calls: Vec<FoundCall> },
    /// Blanks between calls.
    Blanks(String),
    /// Calls in another form, which are calls in any case.
    Calls(Vec<FoundCall>),
}

impl TextScan {
    /// `has_said` if the answer said something before this text.
    pub(crate) fn new(
        known: Arc<Known>,
        forms: RecoveryForms,
        limit: usize,
        has_said: bool,
    ) -> Self {
        Self {
            known,
            forms,
            limit,
            source: Source::default(),
            start: 0,
            has_ended: false,
            readings: Vec::new(),
            judged: Vec::new(),
            place: Place::beginning(has_said),
            blanks: String::new(),
            only_blanks: true,
            after_call: false,
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Takes more text.
    pub(crate) fn push(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        self.source.push(text);
        self.run(pieces);
    }

    /// The text is complete.
    pub(crate) fn end(&mut self, pieces: &mut Vec<Piece>) {
        self.source.end();
        self.has_ended = true;
        self.run(pieces);
        self.release(true, pieces);
        let blanks = std::mem::take(&mut self.blanks);
        if !self.after_call && !blanks.is_empty() {
            pieces.push(Piece::Text(blanks));
        }
    }

    fn run(&mut self, pieces: &mut Vec<Piece>) {
        while self.is_reading() || self.begin(pieces) {
            self.poll();
            if let Some((form, Found { calls, end })) = self.winner() {
                let blanks = std::mem::take(&mut self.blanks);
                self.only_blanks = true;
                self.after_call = true;
                self.place.after_call();
                if form == RecoveryForm::FencedJson {
                    let text = self.source.text(self.start..end);
                    self.hold(Held::Blanks(blanks), pieces);
                    self.hold(Held::Block { text, calls }, pieces);
                } else if self.held.is_empty() {
                    pieces.extend(calls.into_iter().map(Piece::Call));
                } else {
                    self.hold(Held::Blanks(blanks), pieces);
                    self.hold(Held::Calls(calls), pieces);
                }
                self.go_on_at(end);
                continue;
            }
            if !self.readings.is_empty() && !self.has_ended {
                return;
            }
            self.give_up(pieces);
        }
    }

    fn is_reading(&self) -> bool {
        !self.readings.is_empty() || !self.judged.is_empty()
    }

    fn go_on_at(&mut self, position: usize) {
        self.readings.clear();
        self.judged.clear();
        self.start = position;
        self.source.forget(position);
    }

    /// Lets go what no call begins with, and starts the parsers where one could. `false` if there is
    /// no more text.
    fn begin(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let mut forms = Vec::new();
        let place = &mut self.place;
        let gone = self.source.take_while(self.start, |c| {
            // Every form begins with one of these.
            if matches!(c, '<' | '[' | '{' | '`') {
                forms.extend(self.forms.iter().filter(|form| place.may_begin(*form, c)));
            }
            if forms.is_empty() {
                place.step(c);
            }
            forms.is_empty()
        });
        self.let_go(&gone, pieces);
        self.start += gone.len();
        self.source.forget(self.start);
        self.start_at(self.start, &forms);
        !forms.is_empty()
    }

    fn start_at(&mut self, position: usize, forms: &[RecoveryForm]) {
        self.readings.extend(forms.iter().map(|form| {
            let reader = self.source.reader(position, self.limit);
            forms::start(*form, reader, Arc::clone(&self.known))
        }));
    }

    fn poll(&mut self) {
        let judged = &mut self.judged;
        let mut context = Context::from_waker(Waker::noop());
        self.readings
            .retain_mut(|reading| match reading.as_mut().poll(&mut context) {
                Poll::Pending => true,
                Poll::Ready(judgement) => {
                    judged.push(judgement);
                    false
                }
            });
    }

    /// The call that was there first. A parser that is still at work needs more characters than any
    /// that is done, so it would have come later.
    fn winner(&mut self) -> Option<(RecoveryForm, Found)> {
        let found = self.judged.iter().enumerate();
        let found = found.filter(|(_, it)| it.result.is_ok());
        let (at, _) = found.min_by_key(|(_, it)| it.seen)?;
        let Judgement { form, result, .. } = self.judged.swap_remove(at);
        Some((form, result.ok()?))
    }

    /// Keeps a part until it is known whether anything is said beside it.
    fn hold(&mut self, held: Held, pieces: &mut Vec<Piece>) {
        self.held_bytes += match &held {
            Held::Block { text, .. } => text.len(),
            Held::Blanks(blanks) => blanks.len(),
            Held::Calls(calls) => calls.iter().map(|call| call.input.len()).sum(),
        };
        self.held.push(held);
        if self.held_bytes > self.limit {
            // Nobody calls so much at once.
            self.place.says();
            self.only_blanks = false;
            self.after_call = false;
            self.release(false, pieces);
        }
    }

    /// Hands on what is held back: the blocks as calls, or as the text that they are.
    fn release(&mut self, as_calls: bool, pieces: &mut Vec<Piece>) {
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Block { calls, .. } if as_calls => {
                    pieces.extend(calls.into_iter().map(Piece::Call));
                }
                Held::Calls(calls) => pieces.extend(calls.into_iter().map(Piece::Call)),
                Held::Blanks(_) if as_calls => {}
                Held::Block { text, .. } | Held::Blanks(text) => push_text(text, pieces),
            }
        }
    }

    /// No call begins here.
    fn give_up(&mut self, pieces: &mut Vec<Piece>) {
        if self.has_ended && self.after_call {
            let rest = self.source.take_while(self.start, |_| true);
            if is_empty_block(&rest) {
                self.go_on_at(self.start + rest.len());
                return;
            }
        }
        let last = self.judged.iter().max_by_key(|it| it.seen);
        let (stop, at) = last.map_or((Stop::Syntax, self.start), |it| {
            (
                it.result.as_ref().err().copied().unwrap_or(Stop::Syntax),
                it.at,
            )
        });
        let text = self.source.text(self.start..at);
        let whole = stop == Stop::Foreign || text.len() > READ_AGAIN;
        let gone = if whole && !text.is_empty() {
            text
        } else {
            let mut is_first = true;
            self.source
                .take_while(self.start, |_| std::mem::take(&mut is_first))
        };
        for c in gone.chars() {
            self.place.step(c);
        }
        self.let_go(&gone, pieces);
        self.go_on_at(self.start + gone.len());
    }

    /// Hands text on, except for blanks that may turn out to be nothing.
    fn let_go(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if text.is_empty() {
            return;
        }
        let after_call = self.after_call;
        let is_blank = |c: char| c.is_whitespace() || (after_call && is_separator(c));
        if self.only_blanks && text.chars().all(is_blank) {
            self.blanks.push_str(text);
            return;
        }
        self.only_blanks = false;
        self.after_call = false;
        self.release(false, pieces);
        let mut said = std::mem::take(&mut self.blanks);
        said.push_str(text);
        push_text(said, pieces);
    }
}

/// Adds text to the text before it.
fn push_text(text: String, pieces: &mut Vec<Piece>) {
    if text.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(Piece::Text(before)) => before.push_str(&text),
        _ => pieces.push(Piece::Text(text)),
    }
}

/// Whether a text is the beginning of a Markdown block and nothing else. Small models begin another
/// one behind their last call and stop there.
fn is_empty_block(text: &str) -> bool {
    let Some(language) = text.strip_prefix("```") else {
        return false;
    };
    let language = language.trim_end();
    language
        .chars()
        .all(|c| c == '_' || c.is_ascii_alphanumeric())
}
