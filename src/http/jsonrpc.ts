import type { App } from '../core/app.ts'
import { type Call, type CallSurface, carryOut } from '../core/dispatch.ts'
import { codeMessage } from '../error-codes.ts'
import { busy, invalidRequest, refusal, type ServiceError } from '../errors.ts'
import { closest } from '../wire/closest.ts'
import { type Issue, issue, mayHoldBadText } from '../wire/issues.ts'
import { inOnePiece, JsonText, lengthOf, type Text } from '../wire/json-text.ts'
import { parseJson } from '../wire/parse-json.ts'
import { type EdgeReply, jsonReply, retryAfter, unreadReply } from './exchange.ts'
import { smallAnswer, unsent } from './unsent.ts'

/** JSON-RPC 2.0: one validator of calls for POST, batch, GET and WebSocket. */

const nestingMax = 100
const batchMax = 50
/** An entry of a batch runs only while the answers before it are shorter than this. */
const batchAnswerMax = 16_777_216

export type Id = string | number | null
/** What a request carries besides its call. */
export type RequestInfo = Pick<Call, 'carriers' | 'ip' | 'request_id' | 'message' | 'trace'>
/** Over HTTP the key is a header. */
export type RpcCall = { id: Id; method: string; params: unknown; idempotency_key?: unknown }
/** A message that is no call, and its id if that can be told. */
type Refused = { id: Id; refused: ServiceError }
type Answer = {
  status: number
  text: Text
  headers?: Record<string, string>
  /** Length of a result that was produced but not sent, for lack of room. */
  discarded?: number
}

/** `hasEnded` is asked between the entries of a batch: once the client has left, the rest is not carried out. */
export async function rpcPost(
  app: App,
  info: RequestInfo,
  text: string | null,
  hasEnded: () => boolean,
  key?: string,
): Promise<EdgeReply> {
  const parsed = parseText(text)
  if ('refused' in parsed) return toReply(refused(info, parsed.id, parsed.refused))
  const { value, mayHold } = parsed
  if (!Array.isArray(value)) return toReply(await answer(app, info, value, { mayHold, surface: 'http', key }))
  if (key !== undefined) return toReply(refused(info, null, keyNotSupported()))
  if (value.length === 0) return toReply(refused(info, null, invalidRequest('empty_batch')))
  if (value.length > batchMax) return toReply(refused(info, null, invalidRequest('batch_too_large')))
  const replies = await runBatch(app, info, value, mayHold, hasEnded)
  return replies === undefined ? unreadReply() : jsonReply(200, replies)
}

/** The array of replies as text, in parts if it is large; undefined if the client left in the middle. */
async function runBatch(
  app: App,
  info: RequestInfo,
  entries: readonly unknown[],
  mayHold: boolean,
  hasEnded: () => boolean,
): Promise<string | string[] | undefined> {
  const replies: string[] = []
  let [length, discarded] = [0, 0]
  try {
    for (const entry of entries) {
      if (hasEnded()) return undefined
      const answered =
        length + discarded < batchAnswerMax
          ? await answer(app, info, entry, { mayHold, surface: 'batch' })
          : notCarriedOut(info, entry)
      const text = inOnePiece(answered.text)
      replies.push(replies.length === 0 ? '[' : ',', text)
      length += text.length
      unsent.bytes += text.length
      discarded += answered.discarded ?? 0
    }
  } finally {
    unsent.bytes -= length
  }
  replies.push(']')
  return length <= smallAnswer ? replies.join('') : replies
}

/** Refuses an entry behind answers that fill the batch; a bad call is still reported as such. */
function notCarriedOut(info: RequestInfo, entry: unknown): Answer {
  const call = readCall(entry)
  if ('refused' in call) return refused(info, call.id, call.refused)
  return refused(info, call.id, refusal('batch_answer_too_large'))
}

export async function rpcGet(app: App, info: RequestInfo, query: string, key?: string): Promise<EdgeReply> {
  const keys = new URLSearchParams(query)
  const [method, id] = [keys.get('method'), keys.get('id')]
  if (!method) return toReply(refused(info, null, invalidRequest('missing_method')))
  if (!id) return toReply(refused(info, null, invalidRequest('missing_id')))
  const isTwice = (name: string): boolean => keys.getAll(name).length > 1
  if (['method', 'id', 'params'].some(isTwice))
    return toReply(refused(info, isTwice('id') ? null : idOfText(id), invalidRequest('duplicate_query_key')))
  if (key !== undefined) return toReply(refused(info, idOfText(id), keyNotSupported()))
  const text = keys.get('params') ?? ''
  const { params, paramsIssue } = readParams(text)
  if (!paramsIssue && tooDeep(text, nestingMax))
    return toReply(refused(info, idOfText(id), invalidRequest('too_deep')))
  return toReply(
    await answerCall(
      app,
      info,
      { id: idOfText(id), method, params },
      {
        viaGet: true,
        mayHoldBadText: mayHoldBadText(text),
        surface: 'http',
        ...(paramsIssue && { paramsIssue }),
      },
    ),
  )
}

const paramsRule = 'A JSON object is required, URL-encoded.'

/** Parses the `params` of a GET; a failure is reported after the guards. */
function readParams(text: string): { params?: unknown; paramsIssue?: Issue } {
  if (text === '') return {}
  try {
    const params: unknown = parsedOf(text)
    if (params === null) return {}
    return isObject(params) ? { params } : { paramsIssue: issue([], 'invalid_type', paramsRule) }
  } catch {
    return { paramsIssue: issue([], 'invalid_format', paramsRule) }
  }
}

async function answer(
  app: App,
  info: RequestInfo,
  value: unknown,
  { mayHold, surface, key }: { mayHold: boolean; surface: CallSurface; key?: string | undefined },
): Promise<Answer> {
  const call = readCall(value)
  if ('refused' in call) return refused(info, call.id, call.refused)
  if (call.idempotency_key !== undefined) return refused(info, call.id, keyNotSupported())
  call.idempotency_key = key
  return await answerCall(app, info, call, { viaGet: false, mayHoldBadText: mayHold, surface })
}

/** Carries out a valid call; never rejects. */
export async function answerCall(
  app: App,
  info: RequestInfo,
  { id, method, params, idempotency_key }: RpcCall,
  { surface, ...how }: Pick<Call, 'viaGet' | 'mayHoldBadText' | 'paramsIssue'> & { surface: CallSurface },
): Promise<Answer> {
  try {
    const call = { method, params, idempotency_key, ...how, ...info }
    const text = await carryOut(app, surface, call, (result) => toText(id, method, result))
    // A mutation has been carried out by now, so its result is sent whatever its size.
    const length = lengthOf(text)
    if (unsent.isOver(length, app.config) && !app.actions.get(method)?.side_effects)
      return { ...refused(info, id, busy()), discarded: length }
    return info.trace.replayed ? asReplayed(info, { status: 200, text }) : { status: 200, text }
  } catch (error) {
    const known = error as ServiceError
    const answer = refused(info, id, known, known.code === -32601 ? notFoundMessage(app, method) : undefined)
    return info.trace.replayed ? asReplayed(info, answer) : answer
  }
}

/** Marks an answer that repeats the one to an earlier call with the same key. */
const asReplayed = ({ message }: RequestInfo, answer: Answer): Answer =>
  message
    ? { ...answer, text: `${inOnePiece(answer.text).slice(0, -1)},"replayed":true}` }
    : { ...answer, headers: { ...answer.headers, 'idempotency-replayed': 'true' } }

const nameMax = 64

/** Suggests a method with a similar name, unless the service does not publish its methods. */
function notFoundMessage({ actions, config }: App, method: string): string | undefined {
  if (config.openrpc === 'off' || method.length > nameMax) return undefined
  const meant = closest(method, [...actions.keys()])
  return meant && `There is no such method; did you mean ${meant}?`
}

function toText(id: Id, method: string, result: unknown): Text {
  if (result instanceof JsonText)
    return result.within(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, '}')
  const json = JSON.stringify(result)
  if (json === undefined)
    throw new TypeError(`${method}: the handler must return what JSON can represent, such as null`)
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${json}}`
}

/** Checks a call: object, `jsonrpc`, `id`, `method`, `params`, in that order. A valid id is echoed. */
export function readCall(value: unknown): RpcCall | Refused {
  if (!isObject(value)) return { id: null, refused: invalidRequest('not_an_object') }
  const { jsonrpc, method, params, idempotency_key } = value
  const id = idOf(value)
  if (jsonrpc !== '2.0') return { id, refused: invalidRequest('version') }
  if (id === null) return { id, refused: invalidRequest('id') }
  if (typeof method !== 'string') return { id, refused: invalidRequest('method') }
  if (params !== undefined && !isObject(params)) return { id, refused: invalidRequest('params') }
  return { id, method, params, idempotency_key }
}

/** Parses a message; `mayHold` is false if no string in it can fail `badText`. */
export function parseText(text: string | null): { value: unknown; mayHold: boolean } | Refused {
  if (text === null) return notJson()
  try {
    const value: unknown = parsedOf(text)
    if (tooDeep(text, nestingMax)) return { id: idOf(value), refused: invalidRequest('too_deep') }
    // Few texts have such an escape at all.
    return { value, mayHold: text.includes('\\u') && mayHoldBadText(text) }
  } catch {
    return notJson()
  }
}

const notJson = (): Refused => ({ id: null, refused: refusal('parse_error') })

/** A byte order mark before the text is ignored. */
const parsedOf = (text: string): unknown => parseJson(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)

const keyNotSupported = (): ServiceError => invalidRequest('idempotency_not_supported')

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const idOf = (value: unknown): Id => (isObject(value) && isId(value.id) ? value.id : null)

const isId = (id: unknown): id is string | number =>
  typeof id === 'string' ||
  (typeof id === 'number' && Number.isFinite(id) && !(Number.isInteger(id) && !Number.isSafeInteger(id)))

const idOfText = (text: string): string | number =>
  Number.isSafeInteger(Number(text)) && String(Number(text)) === text ? Number(text) : text

/** The answer for an error; puts its reason into the log line of the request. */
export function refused(
  info: Pick<RequestInfo, 'trace'>,
  id: Id,
  { code, status, data, text: own }: ServiceError,
  message: string = own ?? codeMessage(code),
): Answer & { text: string } {
  info.trace.reason = data.reason
  const text = JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } })
  return { status, text, headers: retryAfter(data) }
}

const toReply = ({ status, text, headers }: Answer): EdgeReply => jsonReply(status, text, headers)

/** True when arrays and objects of this valid JSON text nest deeper than `max` levels. */
export function tooDeep(rawJson: string, max: number): boolean {
  // Each level takes two characters, so most bodies are too short to nest that deep.
  if (rawJson.length <= 2 * max) return false
  let depth = 0
  let inString = false
  for (let i = 0; i < rawJson.length; i++) {
    const unit = rawJson.charCodeAt(i)
    if (inString) {
      if (unit === backslash) i++
      else if (unit === quote) inString = false
    } else if (unit === quote) inString = true
    else if (unit === openBracket || unit === openBrace) {
      if (++depth > max) return true
    } else if (unit === closeBracket || unit === closeBrace) depth--
  }
  return false
}

const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
]
