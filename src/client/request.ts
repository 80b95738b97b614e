import { type Client, createClient, link } from './client.ts'

type Readable = { get(name: string): string | null }
/** A request of Node or of the Fetch standard. */
export type IncomingRequest = {
  headers: Readable | Record<string, string | string[] | undefined>
  socket?: { remoteAddress?: string | undefined }
}

/** A client that acts for one visitor. */
export type VisitorClient<A> = Client<A> & {
  /** The `Set-Cookie` values of the service so far, to be sent to the visitor with the reply. */
  setCookies: string[]
}

/** Headers of the server's own client that would make it act as somebody other than the visitor. */
const credentials = /^(authorization|cookie|x-daemon-token|x-forwarded-for)$/

/**
 * A client for one request of a visitor to a server. It has the visitor's cookie and address, and the options of
 * `client` except its credential. `address` is the visitor's; a request of Node already has it.
 */
export function forRequest<A>(
  { [link]: to }: Pick<Client<A>, typeof link>,
  request: IncomingRequest,
  { address = request.socket?.remoteAddress }: { address?: string | undefined } = {},
): VisitorClient<A> {
  const { headers } = request
  const sent = (name: string): string =>
    String((isReadable(headers) ? headers.get(name) : headers[name]) ?? '')
  const own = [...new Headers(to.options.headers)].filter(([name]) => !credentials.test(name))
  if (address) own.push(['x-forwarded-for', [sent('x-forwarded-for'), address].filter(Boolean).join(', ')])
  // Browsers and workerd refuse their `fetch` as a method of another object.
  const { fetch } = to
  const setCookies: string[] = []
  const client = createClient<A>({
    ...to.options,
    token: undefined,
    jar: sent('cookie') || true,
    headers: Object.fromEntries(own),
    fetch: async (...call) => {
      const response = await fetch(...call)
      setCookies.push(...response.headers.getSetCookie())
      return response
    },
  })
  return Object.assign(client, { setCookies })
}

const isReadable = (headers: IncomingRequest['headers']): headers is Readable =>
  typeof headers.get === 'function'
