//! Takes spans as they end.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use switchboard_orchestration::observe::trace::{CONTENT, SPANS};
use tokio::sync::mpsc;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, filter::filter_fn, layer::Context, registry::LookupSpan};
use uuid::Uuid;

/// A span that ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedSpan {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) client: bool,
    pub(super) failed: bool,
    pub(super) since: SystemTime,
    pub(super) until: SystemTime,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
}

/// A value of one of the types that spans can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attribute {
    Text(String),
    Whole(i64),
    Number(f64),
    Bool(bool),
}

/// Where ended spans go. Never waits: what does not fit is counted.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) spans: mpsc::Sender<EndedSpan>,
    pub(super) dropped: Arc<AtomicU64>,
}

/// Takes the spans of runs. Cheap to clone.
#[derive(Clone)]
pub(in crate::observe) struct SpanLayer {
    queue: Queue,
    content: bool,
}

impl SpanLayer {
    pub(super) fn new(queue: Queue, content: bool) -> Self {
        Self { queue, content }
    }

    /// The layer with the filter that it needs: nothing but spans of runs is made for it, and what was
    /// said only if that is wanted.
    pub(in crate::observe) fn filtered<S>(self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let content = self.content;
        let is_ours = move |metadata: &Metadata<'_>| match metadata.target() {
            SPANS => metadata.is_span(),
            CONTENT => content,
            _ => false,
        };
        self.with_filter(filter_fn(is_ours))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let parent = extensions.get::<EndedSpan>()?;
            Some((parent.trace, parent.id))
        });
        let mut begun = EndedSpan {
            trace: parent.map_or_else(|| Uuid::new_v4().into_bytes(), |(trace, _)| trace),
            id: span_id(),
            parent: parent.map(|(_, id)| id),
            name: span.name().to_owned(),
            client: false,
            failed: false,
            since: SystemTime::now(),
            until: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
        };
        attributes.record(&mut begun);
        span.extensions_mut().insert(begun);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(begun) = span.extensions_mut().get_mut::<EndedSpan>()
        {
            values.record(begun);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.event_span(event)
            && let Some(begun) = span.extensions_mut().get_mut::<EndedSpan>()
        {
            event.record(begun);
        }
    }

    fn on_close(&self, id: span::Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let Some(mut ended) = span.extensions_mut().remove::<EndedSpan>() else {
            return;
        };
        ended.until = SystemTime::now();
        if self.queue.spans.try_send(ended).is_err() {
            self.queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EndedSpan {
    fn set(&mut self, name: &'static str, value: Attribute) {
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name, value)),
        }
    }
}

impl Visit for EndedSpan {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "otel.name" => value.clone_into(&mut self.name),
            "otel.kind" => self.client = value == "client",
            "otel.status_code" => self.failed = value == "ERROR",
            name => self.set(name, Attribute::Text(value.to_owned())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Attribute::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.set(field.name(), Attribute::Whole(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.set(field.name(), Attribute::Number(value));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Attribute::Bool(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), Attribute::Text(format!("{value:?}")));
    }
}

/// Eight random bytes. The ninth byte of a version 4 UUID has two fixed bits and the rest none, so they
/// are not all zero, which would be no id.
fn span_id() -> [u8; 8] {
    let mut id = [0; 8];
    id.copy_from_slice(&Uuid::new_v4().as_bytes()[8..]);
    id
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
