/** What the scripts of this folder share: each starts one system, fills it, and sends its requests to the bench. */

export const people = 64

/** An HTTP request as text, keep-alive. */
export function request(method, path, headers, body) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const sent = {
    host: '127.0.0.1',
    ...headers,
    ...(body !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }),
  }
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}

/** Tells the bench what to request. */
export function answer(port, requests) {
  process.send({ port, requests })
  process.once('disconnect', () => process.exit())
}
