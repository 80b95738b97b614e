import { isUtf8 } from 'node:buffer'
import type { Config } from '../config/config.ts'
import { refusal } from '../errors.ts'
import type { EdgeRequest, RaiseLimit } from './reply.ts'

/**
 * Reads a JSON body as text: '' without a body, null where the bytes are not
 * UTF-8. Refuses another media type, another charset and any content encoding.
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

/** A declared length tells before anything is read who may send so much. */
async function declaredOver(
  request: EdgeRequest,
  limit: number,
  raise?: RaiseLimit,
): Promise<Uint8Array | null> {
  const raised = (await raise?.()) ?? limit
  return Number(request.header('content-length')) <= raised ? await request.body(raised) : null
}

/** Most bytes of a body, by whether its sender has shown a valid credential. */
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
