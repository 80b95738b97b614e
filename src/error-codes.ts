/** The JSON-RPC error codes, with their fixed text and HTTP status. */
const codes: Readonly<Record<number, { status: number; message: string }>> = {
  [-32700]: { status: 400, message: 'The body is not valid JSON.' },
  [-32600]: { status: 400, message: 'The request is not a valid JSON-RPC 2.0 call.' },
  [-32601]: { status: 404, message: 'There is no such method.' },
  [-32602]: { status: 400, message: 'The parameters are not valid.' },
  [-32603]: { status: 500, message: 'The server failed unexpectedly.' },
  [-32001]: { status: 401, message: 'A valid credential is required.' },
  [-32002]: { status: 403, message: 'The caller may not do this.' },
  [-32003]: { status: 404, message: 'What was requested does not exist.' },
  [-32004]: { status: 409, message: 'The current state does not allow this.' },
  [-32005]: { status: 422, message: 'The content was refused.' },
  [-32006]: { status: 429, message: 'Too many attempts; retry later.' },
  [-32007]: { status: 503, message: 'The service is not available; retry later.' },
  [-32008]: { status: 504, message: 'The operation took too long and was undone.' },
  [-32009]: { status: 429, message: 'Too many requests are in flight.' },
  [-32010]: { status: 499, message: 'The request was cancelled.' },
}

/** The fixed text of a code; a consumer's own code (-32099..-32000) has a generic one. */
export const codeMessage = (code: number): string => codes[code]?.message ?? 'The request was refused.'

/** The HTTP status of a code; 500 for an unknown code. */
export const codeStatus = (code: number): number => codes[code]?.status ?? 500

/** True for a valid error code: one of the table or a consumer's own. */
export const isErrorCode = (code: number): boolean =>
  Object.hasOwn(codes, code) || (Number.isInteger(code) && code >= -32099 && code <= -32000)

/** The code with this status, for clients that only look at codes; else a consumer's code. */
export function codeFor(status: number): number {
  if (status === codeStatus(-32602)) return -32602
  const own = Object.entries(codes).find(([code, entry]) => Number(code) > -32100 && entry.status === status)
  return Number(own?.[0] ?? -32000)
}
