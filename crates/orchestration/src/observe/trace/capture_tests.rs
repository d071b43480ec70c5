//! A subscriber for tests that records spans and events.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

pub(super) type Fields = BTreeMap<&'static str, String>;
/// The name of the parent and the fields of an ended span.
type Ended = (Option<String>, Fields);

/// The recorded spans by their end, and the events.
#[derive(Debug, Clone, Default)]
pub(super) struct CapturedTrace {
    pub(super) spans: Arc<Mutex<Vec<Ended>>>,
    pub(super) events: Arc<Mutex<Vec<(&'static str, Fields)>>>,
}

struct Capture {
    captured: CapturedTrace,
    content: bool,
}

impl CapturedTrace {
    /// Runs `work` with a new subscriber, and returns what it recorded.
    pub(super) fn of(content: bool, work: impl FnOnce()) -> Self {
        let captured = Self::default();
        let layer = Capture {
            captured: captured.clone(),
            content,
        };
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, work);
        captured
    }

    /// Returns the ended span with this name.
    pub(super) fn span(&self, name: &str) -> Ended {
        let spans = self.spans.lock().unwrap();
        let found = spans.iter().find(|(_, fields)| fields["otel.name"] == name);
        found
            .unwrap_or_else(|| panic!("{name} is not in {spans:?}"))
            .clone()
    }

    /// Returns the events with this target, one line each.
    pub(super) fn lines(&self, target: &str) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let ours = events.iter().filter(|(of, _)| *of == target);
        ours.map(|(_, fields)| {
            let message = fields.get("message").map_or("", String::as_str);
            let rest = fields.iter().filter(|(name, _)| **name != "message");
            rest.fold(message.to_owned(), |line, (name, value)| {
                format!("{line} {name}={value}")
            })
        })
        .collect()
    }
}

impl Visit for Recorded<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

struct Recorded<'a>(&'a mut Fields);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Capture {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        self.content || metadata.target() != super::CONTENT
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Recorded(&mut fields));
        ctx.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        let span = ctx.span(id).unwrap();
        let mut extensions = span.extensions_mut();
        values.record(&mut Recorded(extensions.get_mut().unwrap()));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Recorded(&mut fields));
        let target = event.metadata().target();
        self.captured.events.lock().unwrap().push((target, fields));
    }

    fn on_close(&self, id: span::Id, ctx: Context<'_, S>) {
        let span = ctx.span(&id).unwrap();
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Fields>()?.get("otel.name").cloned()
        });
        let fields = span.extensions_mut().remove().unwrap();
        self.captured.spans.lock().unwrap().push((parent, fields));
    }
}
