//! Cuts a JSON array of objects into its elements as it comes in, so that it never has to be in memory as a whole.

use crate::ImportError;

/// The largest element: more than any message may be, less than would harm.
const MOST_BYTES: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before `[`.
    Start,
    /// After `[`: an element or the end.
    First,
    /// After `,`: an element.
    Next,
    /// After an element: `,` or the end.
    After,
    /// In an element.
    Inside {
        depth: usize,
        text: bool,
        escaped: bool,
    },
    /// After `]`.
    End,
}

/// Takes bytes in any pieces and gives the text of each element. What is within an element is for a parser to
/// check.
#[derive(Debug)]
pub(crate) struct Elements {
    state: State,
    element: Vec<u8>,
}

impl Elements {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Start,
            element: Vec::new(),
        }
    }

    /// Adds the elements that end within `bytes` to `found`.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        found: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let mut from = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            let inside = matches!(self.state, State::Inside { .. });
            self.state = self.step(byte)?;
            match (inside, self.state) {
                (false, State::Inside { .. }) => from = at,
                (true, State::After) => {
                    self.add(&bytes[from..=at])?;
                    let element = String::from_utf8(std::mem::take(&mut self.element));
                    found.push(element.map_err(|_| ImportError::malformed("it is not UTF-8"))?);
                }
                _ => {}
            }
        }
        if matches!(self.state, State::Inside { .. }) {
            self.add(&bytes[from..])?;
        }
        Ok(())
    }

    /// Whether the array has ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::End
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        if self.element.len() + bytes.len() > MOST_BYTES {
            let reason = format!("one of its records is larger than {MOST_BYTES} bytes");
            return Err(ImportError::malformed(reason));
        }
        self.element.extend_from_slice(bytes);
        Ok(())
    }

    fn step(&self, byte: u8) -> Result<State, ImportError> {
        let begun = State::Inside {
            depth: 1,
            text: false,
            escaped: false,
        };
        Ok(match (self.state, byte) {
            (
                State::Inside {
                    depth,
                    text,
                    escaped,
                },
                _,
            ) => inside(depth, text, escaped, byte),
            (state, b' ' | b'\n' | b'\r' | b'\t') => state,
            (State::Start, b'[') => State::First,
            (State::First | State::Next, b'{') => begun,
            (State::First | State::After, b']') => State::End,
            (State::After, b',') => State::Next,
            _ => {
                return Err(ImportError::malformed("it is not a JSON array of objects"));
            }
        })
    }
}

fn inside(depth: usize, text: bool, escaped: bool, byte: u8) -> State {
    let go_on = |depth, text, escaped| State::Inside {
        depth,
        text,
        escaped,
    };
    match byte {
        _ if escaped => go_on(depth, text, false),
        b'\\' if text => go_on(depth, text, true),
        b'"' => go_on(depth, !text, false),
        _ if text => go_on(depth, text, false),
        b'{' | b'[' => go_on(depth + 1, text, false),
        b'}' | b']' if depth == 1 => State::After,
        b'}' | b']' => go_on(depth - 1, text, false),
        _ => go_on(depth, text, false),
    }
}

#[cfg(test)]
#[path = "elements_tests.rs"]
mod tests;
