//! One text, cut into what is said and what is called.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    call::FoundCall,
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
}

impl TextScan {
    pub(crate) fn new(known: Arc<Known>, forms: RecoveryForms, limit: usize) -> Self {
        Self {
            known,
            forms,
            limit,
            source: Source::default(),
            start: 0,
            has_ended: false,
            readings: Vec::new(),
            judged: Vec::new(),
            place: Place::default(),
            blanks: String::new(),
            only_blanks: true,
            after_call: false,
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
        let blanks = std::mem::take(&mut self.blanks);
        if !self.after_call && !blanks.is_empty() {
            pieces.push(Piece::Text(blanks));
        }
    }

    fn run(&mut self, pieces: &mut Vec<Piece>) {
        while self.is_reading() || self.begin(pieces) {
            self.poll();
            if let Some(found) = self.winner() {
                self.blanks.clear();
                self.only_blanks = true;
                self.after_call = true;
                self.place.after_call();
                pieces.extend(found.calls.into_iter().map(Piece::Call));
                self.go_on_at(found.end);
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
    fn winner(&mut self) -> Option<super::call::Found> {
        let found = self.judged.iter().enumerate();
        let found = found.filter(|(_, it)| it.result.is_ok());
        let (at, _) = found.min_by_key(|(_, it)| it.seen)?;
        self.judged.swap_remove(at).result.ok()
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
        let mut said = std::mem::take(&mut self.blanks);
        said.push_str(text);
        match pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(&said),
            _ => pieces.push(Piece::Text(said)),
        }
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
