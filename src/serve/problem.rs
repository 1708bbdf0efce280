//! What went wrong, as RFC 9457 has it: for programs a code, for people a sentence.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use samestory_engine::index::StoreError;

/// A problem document.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// What else there is to say to programs.
    more: Option<Box<Map<String, Value>>>,
    /// For the log alone: where the state lies is nobody's business but the operator's.
    hidden: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into(), more: None, hidden: None }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(super) fn unknown(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "unknown", detail)
    }

    pub(super) fn internal() -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "this is a mistake in the program")
    }

    /// The same, with something for programs.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Problem {
        self.more.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// Whether it says that there is no such thing, as far as is known here.
    pub(super) fn is_unknown(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// What the operator should know of it.
    pub(super) fn hidden(&self) -> Option<&str> {
        self.hidden.as_deref()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let detail = "the state cannot be read; the log says why";
        let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "state", detail);
        Problem { hidden: Some(error.to_string()), ..problem }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let mut body = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Value::Object(members) = &mut body {
            members.extend(self.more.into_iter().flat_map(|more| *more));
        }
        let mut response = super::json(self.status, &body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}
