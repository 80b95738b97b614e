import { isUtf8 } from 'node:buffer'
import type { Config } from '../config/config.ts'
import { refusal } from '../errors.ts'
import type { EdgeRequest, RaiseLimit } from './reply.ts'

/**
 * Reads a JSON body as text: '' if there is no body, null if the bytes are not UTF-8. Refuses other media types,
 * other charsets and any content encoding.
 */
export async function readJsonText(
  request: EdgeRequest,
  limit: number,
  raise?: RaiseLimit,
): Promise<string | null> {
  if (!request.hasBody) return ''
  if (!isJsonType(request.header('content-type')) || !isIdentity(request.header('content-encoding')))
    throw refusal('unsupported_media_type')
  const bytes =
    Number(request.header('content-length') ?? 0) <= limit
      ? await request.body(limit, raise)
      : await declaredOver(request, limit, raise)
  if (bytes === null) throw refusal('payload_too_large')
  if (!isUtf8(bytes)) return null
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

/** With a declared length, the higher limit can be asked for before anything is read. */
async function declaredOver(
  request: EdgeRequest,
  limit: number,
  raise?: RaiseLimit,
): Promise<Uint8Array | null> {
  const raised = (await raise?.()) ?? limit
  return Number(request.header('content-length')) <= raised ? await request.body(raised) : null
}

/** The maximum size of a body in bytes; `isKnown` says that its sender has a valid credential. */
export const bodyLimit = (config: Config, isKnown: boolean): number =>
  isKnown ? config.body_limit : Math.min(config.body_limit, config.body_limit_anonymous)

function isJsonType(header: string | undefined): boolean {
  if (header === 'application/json') return true
  const [type, ...parameters] = (header ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  if (type !== 'application/json') return false
  return parameters.every(
    (parameter) => !/^charset\s*=/.test(parameter) || /^charset=("?)utf-8\1$/.test(parameter),
  )
}

const isIdentity = (header: string | undefined): boolean =>
  header === undefined || ['', 'identity'].includes(header.trim().toLowerCase())
