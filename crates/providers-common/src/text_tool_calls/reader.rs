//! Text that arrives in pieces, read as if it were all there.
//!
//! The parsers of the forms are straight-line code that asks for the next character. They are written
//! as `async` functions, and a [`Reader`] suspends them where the text received so far ends; whoever
//! feeds the text polls them again. No runtime and no waker is involved: it is the language's way to
//! write a state machine. Since a parser sees one character after the other whatever the pieces
//! were, how the text was cut cannot change what it makes of it.

use std::{
    future::poll_fn,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

/// Why a parser stopped in the middle of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text ended.
    End,
    /// It is not written in the form.
    Syntax,
    /// It is, but is no call of an offered tool.
    Foreign,
}

/// Text that several readers look at while it arrives. Positions count bytes from the beginning of
/// the whole text, also after its beginning has been forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    text: String,
    /// The position of the first byte that is kept.
    base: usize,
    ended: bool,
}

impl Shared {
    fn slice(&self, range: Range<usize>) -> &str {
        let from = range.start.saturating_sub(self.base);
        let to = range.end.saturating_sub(self.base).min(self.text.len());
        self.text.get(from..to).unwrap_or_default()
    }
}

impl Source {
    /// A text that is there as a whole.
    pub(crate) fn whole(text: &str) -> Self {
        let source = Self::default();
        source.push(text);
        source.end();
        source
    }

    pub(crate) fn push(&self, text: &str) {
        self.lock().text.push_str(text);
    }

    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    pub(crate) fn text(&self, range: Range<usize>) -> String {
        self.lock().slice(range).to_owned()
    }

    /// The text from `position` on, up to the first character for which `goes_on` is false.
    pub(crate) fn take_while(
        &self,
        position: usize,
        mut goes_on: impl FnMut(char) -> bool,
    ) -> String {
        let shared = self.lock();
        let rest = shared.slice(position..usize::MAX);
        let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default().to_owned()
    }

    /// Forgets what comes before `position`, sooner or later: not so often that moving the rest
    /// would cost more than reading it.
    pub(crate) fn forget(&self, position: usize) {
        let mut shared = self.lock();
        let gone = position.saturating_sub(shared.base).min(shared.text.len());
        if gone * 2 >= shared.text.len() && shared.text.is_char_boundary(gone) {
            shared.text.drain(..gone);
            shared.base += gone;
        }
    }

    /// Reads on from `position`, `limit` bytes at most.
    pub(crate) fn reader(&self, position: usize, limit: usize) -> Reader {
        Reader {
            source: self.clone(),
            at: position,
            end: position.saturating_add(limit),
            seen: position,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing can panic while it is held, and the text would still be text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a text.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    at: usize,
    /// Here the text counts as ended.
    end: usize,
    seen: usize,
}

impl Reader {
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The position behind the last character looked at.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// Goes back to a place where it was.
    pub(crate) fn back_to(&mut self, position: usize) {
        self.at = position.min(self.at);
    }

    pub(crate) fn text(&self, range: Range<usize>) -> String {
        self.source.text(range)
    }

    /// What was read since `position`.
    pub(crate) fn since(&self, position: usize) -> String {
        self.text(position..self.at)
    }

    /// The next character, which stays the next one; `None` at the end of the text.
    pub(crate) async fn peek(&mut self) -> Option<char> {
        poll_fn(|_| {
            if self.at >= self.end {
                return Poll::Ready(None);
            }
            let shared = self.source.lock();
            let rest = shared.text.get(self.at.saturating_sub(shared.base)..);
            match rest.and_then(|rest| rest.chars().next()) {
                Some(c) => {
                    self.seen = self.seen.max(self.at + c.len_utf8());
                    Poll::Ready(Some(c))
                }
                None if shared.ended => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The next character, which must be there.
    pub(crate) async fn need(&mut self) -> Result<char, Stop> {
        self.peek().await.ok_or(Stop::End)
    }

    /// Steps over the character that was looked at.
    pub(crate) fn bump(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    /// Steps over blanks and line breaks.
    pub(crate) async fn blanks(&mut self) {
        self.skip(char::is_whitespace).await;
    }

    /// Steps over all characters of a kind; many at once, as most of a long input is read here.
    pub(crate) async fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        let Self {
            source,
            at,
            end,
            seen,
        } = self;
        poll_fn(|_| {
            let shared = source.lock();
            let rest = shared.text.get(at.saturating_sub(shared.base)..);
            for c in rest.unwrap_or_default().chars() {
                if *at >= *end {
                    return Poll::Ready(());
                }
                *seen = (*seen).max(*at + c.len_utf8());
                if !is_skipped(c) {
                    return Poll::Ready(());
                }
                *at += c.len_utf8();
            }
            if shared.ended || *at >= *end {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Steps over one character that must come next.
    pub(crate) async fn expect(&mut self, expected: char) -> Result<(), Stop> {
        match self.need().await? {
            c if c == expected => {
                self.bump(c);
                Ok(())
            }
            _ => Err(Stop::Syntax),
        }
    }

    /// Steps over a text that must come next.
    pub(crate) async fn literal(&mut self, expected: &str) -> Result<(), Stop> {
        for c in expected.chars() {
            self.expect(c).await?;
        }
        Ok(())
    }

    /// Steps over one of the texts if it comes next; otherwise stays where it is.
    pub(crate) async fn optional(&mut self, expected: &[&str]) -> bool {
        let start = self.at;
        for text in expected {
            if self.literal(text).await.is_ok() {
                return true;
            }
            self.at = start;
        }
        false
    }

    /// As [`Reader::optional`] for a mark behind something that is complete: also where the text ends
    /// within the mark.
    pub(crate) async fn closer(&mut self, expected: &[&str]) -> bool {
        let start = self.at;
        for text in expected {
            match self.literal(text).await {
                Ok(()) => return true,
                Err(Stop::End) if self.at > start => return true,
                Err(_) => self.at = start,
            }
        }
        false
    }

    /// Reads up to the first of the texts, which comes next then. Gives what was read.
    pub(crate) async fn until(&mut self, marks: &[&str]) -> Result<String, Stop> {
        let mut read = String::new();
        loop {
            if let Some(mark) = marks.iter().find(|mark| read.ends_with(*mark)) {
                read.truncate(read.len() - mark.len());
                self.at -= mark.len();
                return Ok(read);
            }
            let c = self.need().await?;
            read.push(c);
            self.bump(c);
        }
    }
}
