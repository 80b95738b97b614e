/** For hosts that hand over a `Request` and take a `Response`, such as a route handler of Next.js. */
import { createService } from 'cellkeep'

const service = await createService({
  data_dir: process.env.DATA_DIR ?? 'data',
  bootstrap: 'live',
  trusted_proxies: ['127.0.0.1'],
})

export async function handle(request: Request): Promise<Response> {
  // The host's proxy names the visitor in X-Forwarded-For; a host that tells the address itself gives that.
  if (service.answers(new URL(request.url).pathname)) return service.fetch(request, { address: '127.0.0.1' })
  const cookie = request.headers.get('cookie')
  const visitor = service.call('account_verify', {}, { headers: cookie ? { cookie } : {} })
  const name = await visitor.then(
    ({ username }) => username,
    () => 'stranger',
  )
  return new Response(`Hello, ${name}.`)
}

export const close = (): Promise<void> => service.close()
