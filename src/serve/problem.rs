//! Error responses of the query API as RFC 9457 problem details: a code for programs and a sentence for
//! people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use samestory_engine::index::StoreError;

/// A problem document: the body and status of an error response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProblemDetails {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Further JSON members for programs.
    extensions: Option<Box<Map<String, Value>>>,
    /// For the log only: clients must not learn paths of the state directory.
    internal: Option<String>,
}

impl ProblemDetails {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> ProblemDetails {
        ProblemDetails { status, code, detail: detail.into(), extensions: None, internal: None }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> ProblemDetails {
        ProblemDetails::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(super) fn unknown(detail: impl Into<String>) -> ProblemDetails {
        ProblemDetails::new(StatusCode::NOT_FOUND, "unknown", detail)
    }

    pub(super) fn internal() -> ProblemDetails {
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error; please report it")
    }

    /// Adds a JSON member for programs.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> ProblemDetails {
        self.extensions.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// True if this is a 404: no open store has what was asked for.
    pub(super) fn is_unknown(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// The cause, for the log only.
    pub(super) fn log_message(&self) -> Option<&str> {
        self.internal.as_deref()
    }
}

impl From<StoreError> for ProblemDetails {
    fn from(error: StoreError) -> ProblemDetails {
        let detail = "the state cannot be read; see the log";
        let problem = ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "state", detail);
        ProblemDetails { internal: Some(error.to_string()), ..problem }
    }
}

impl IntoResponse for ProblemDetails {
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
            members.extend(self.extensions.into_iter().flat_map(|extensions| *extensions));
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
