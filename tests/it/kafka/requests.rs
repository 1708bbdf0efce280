//! Finds Kafka requests in a client's stream of bytes, however the network splits it.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of what follows |
//! | 2 | API key |
//! | … | version, correlation id, client id, body: skipped |

/// API key of EndTxn.
pub(crate) const END_TXN: i16 = 26;

/// Follows one connection from its first byte.
#[derive(Default)]
pub(crate) struct Requests {
    head: Vec<u8>,
    rest: usize,
}

impl Requests {
    /// Processes the next bytes of the stream. Returns the API keys of the requests that begin in them.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Vec<i16> {
        let mut keys = Vec::new();
        while !bytes.is_empty() {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len());
                self.rest -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            if let [a, b, c, d, high, low] = self.head[..] {
                keys.push(i16::from_be_bytes([high, low]));
                let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap();
                self.rest = length.saturating_sub(2);
                self.head.clear();
            }
        }
        keys
    }
}

#[test]
fn requests_are_found_however_the_bytes_are_split() {
    let request = |key: i16, body: usize| {
        let length = u32::try_from(body + 2).unwrap().to_be_bytes();
        // The bodies are full of bytes that look like the API key.
        [&length[..], &key.to_be_bytes(), &b"\0\x1a".repeat(body)[..body]].concat()
    };
    let stream = [request(18, 8), request(END_TXN, 30), request(0, 0), request(3, 300)].concat();
    for cut in 1..stream.len() {
        let mut requests = Requests::default();
        let keys: Vec<i16> = stream.chunks(cut).flat_map(|bytes| requests.feed(bytes)).collect();
        assert_eq!(keys, [18, END_TXN, 0, 3], "cut every {cut} bytes");
    }
}
