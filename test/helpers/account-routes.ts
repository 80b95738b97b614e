import { type IncomingHttpHeaders, request } from 'node:http'
import { sessionIdOf } from '../../src/auth/cookie.ts'

/** A raw reply; fetch would join and hide headers. */
export type Reply = {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The parsed body; null if it is empty. */
  json: Record<string, unknown> | null
  /** `name=value` of the one cookie that was set, ready to send back; undefined if none was. */
  cookie: string | undefined
  /** Status, body and all headers but `Date`: equal if callers must not see a difference. */
  bare: string
}

export type SendOptions = {
  body?: unknown
  cookie?: string | undefined
  /** Sent as `X-Forwarded-For`: for services with `trusted_proxies: ['127.0.0.1']`. */
  ip?: string
  headers?: Record<string, string>
}

/** One request to an account route of a test service, such as `send(test, 'POST /login', { body })`. */
export function send(test: { url: string }, route: string, options: SendOptions = {}): Promise<Reply> {
  const [method, path] = route.split(' ') as [string, string]
  const { body, cookie, ip, headers } = options
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const sent = request(`${test.url}/api/account${path}`, {
      method,
      headers: {
        'x-request-id': 'test',
        ...(text !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
        ...(cookie && { cookie }),
        ...(ip && { 'x-forwarded-for': ip }),
        ...headers,
      },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const received = Buffer.concat(chunks).toString('utf8')
        const status = response.statusCode as number
        const [set] = response.headers['set-cookie'] ?? []
        const lines = response.rawHeaders
          .flatMap((name, i, all) => (i % 2 === 0 ? [`${name}: ${all[i + 1]}`] : []))
          .filter((line) => !line.startsWith('Date: '))
        resolve({
          status,
          headers: response.headers,
          text: received,
          json: received === '' ? null : JSON.parse(received),
          cookie: set?.slice(0, set.indexOf(';')),
          bare: [status, ...lines, '', received].join('\n'),
        })
      })
    })
    sent.end(text)
  })
}

/** A new client address for each call. */
export const freshIp = (): string => `10.${(count >> 16) & 255}.${(count >> 8) & 255}.${count++ & 255}`
let count = 1

/** The id of the session that a `Cookie` header carries. */
export const sessionIn = (cookie: string | undefined): string =>
  sessionIdOf((cookie ?? '').slice('svc_session='.length).split('.')[0] as string)

export const clearedCookie = 'svc_session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict'
