//! Scripted answers of the server.

use std::io;

use axum::body::Bytes;
use serde_json::Value;

use super::Gate;
use crate::transcripts::{self, Form};

/// A scripted answer: a status, headers, and a body in pieces with [gates](Gate) between them.
///
/// Every piece is written separately, so that a client receives the pieces one by one.
#[derive(Debug, Clone)]
#[must_use]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// Gates at which the server waits before it sends the status.
    pub(super) held_by: Vec<Gate>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Piece(Bytes),
    Gate(Gate),
    BreakOff,
}

impl Answer {
    /// Creates an answer with this status, no headers and an empty body.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            held_by: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Creates an answer with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, Form::Json, body.to_string())
    }

    /// Creates an answer of status 200 with server-sent events in one piece.
    pub fn sse(body: impl Into<Bytes>) -> Self {
        Self::whole(200, Form::Sse, body)
    }

    /// Creates an answer of status 200 with JSON lines in one piece.
    pub fn ndjson(body: impl Into<Bytes>) -> Self {
        Self::whole(200, Form::Ndjson, body)
    }

    /// Creates an answer of status 200 with a stored transcript in one piece, by its path below
    /// `transcripts/`, such as `openai-chat/text.sse`. The extension determines the media type.
    ///
    /// Fails like [`transcripts::read`].
    pub fn transcript(path: &str) -> io::Result<Self> {
        let transcript = transcripts::read(path)?;
        Ok(Self::whole(200, transcript.form, transcript.bytes))
    }

    fn whole(status: u16, form: Form, body: impl Into<Bytes>) -> Self {
        Self::new(status)
            .header("content-type", form.media_type())
            .piece(body)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a piece of the body.
    pub fn piece(mut self, bytes: impl Into<Bytes>) -> Self {
        self.steps.push(Step::Piece(bytes.into()));
        self
    }

    /// Adds a gate after all pieces so far.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// Adds a gate to an existing body: before the piece with this number (from 0), or at its end
    /// if it has fewer pieces.
    pub fn gate_before(self, piece: usize, gate: &Gate) -> Self {
        self.insert_before(piece, Step::Gate(gate.clone()))
    }

    /// Aborts the connection before the piece with this number (from 0) of an existing body, or at
    /// its end if it has fewer pieces.
    pub fn break_before(self, piece: usize) -> Self {
        self.insert_before(piece, Step::BreakOff)
    }

    fn insert_before(mut self, piece: usize, step: Step) -> Self {
        let steps = self.steps.iter().enumerate();
        let mut pieces = steps.filter(|(_, step)| matches!(step, Step::Piece(_)));
        let at = pieces.nth(piece).map_or(self.steps.len(), |(at, _)| at);
        self.steps.insert(at, step);
        self
    }

    /// Withholds the whole answer, including its status, until the gate is opened.
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.held_by.push(gate.clone());
        self
    }

    /// Aborts the connection here instead of ending the body. Later pieces are never sent.
    pub fn break_off(mut self) -> Self {
        self.steps.push(Step::BreakOff);
        self
    }

    /// Returns the number of pieces of the body.
    pub fn pieces(&self) -> usize {
        let pieces = self.steps.iter();
        pieces.filter(|step| matches!(step, Step::Piece(_))).count()
    }
}
