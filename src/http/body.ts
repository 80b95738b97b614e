import { isUtf8 } from 'node:buffer'
import { refusal } from '../errors.ts'
import type { EdgeRequest, IsKnown } from './reply.ts'

/**
 * Reads a JSON body as text: '' if there is no body, null if the bytes are not UTF-8. Refuses other media types,
 * other charsets and any content encoding.
 */
export async function readJsonText(
  request: EdgeRequest,
  limit: number,
  isKnown: IsKnown,
): Promise<string | null> {
  if (!request.hasBody) return ''
  if (!isJsonType(request.header('content-type')) || !isIdentity(request.header('content-encoding')))
    throw refusal('unsupported_media_type')
  const bytes = await request.body(limit, isKnown)
  if (bytes === null) throw refusal('payload_too_large')
  if (!isUtf8(bytes)) return null
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

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
