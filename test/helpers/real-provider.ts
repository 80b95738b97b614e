import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** An independent, certified provider, as a process of its own, for this redirect URI. */
export async function realProvider(redirect: string) {
  const child: ChildProcess = spawn(process.execPath, ['test/helpers/oidc-provider.mjs', redirect], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  return {
    issuer: String(line).trim(),
    browse: (url: string, login: string) => browse(redirect, url, login),
    close: () => void child.kill(),
  }
}

/** Follows redirects and fills in the forms of the provider, until it leads back to the service. */
async function browse(redirect: string, url: string, login: string): Promise<string> {
  const cookies = new Map<string, string>()
  let next: { url: string; form?: URLSearchParams } = { url }
  for (let step = 0; step < 20; step++) {
    const response = await fetch(next.url, {
      method: next.form ? 'POST' : 'GET',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(next.form && { body: next.form }),
      redirect: 'manual',
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) as unknown as [string, string, string]
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location?.startsWith(redirect)) return new URL(location).search
    if (location) {
      next = { url: new URL(location, next.url).href }
      continue
    }
    const html = await response.text()
    const action = /<form[^>]* action="([^"]+)"/.exec(html)?.[1]
    const prompt = /name="prompt" value="([^"]+)"/.exec(html)?.[1]
    if (!action || !prompt) throw new Error(`no form in ${html}`)
    next = {
      url: new URL(action, next.url).href,
      form: new URLSearchParams({ prompt, login, password: 'any' }),
    }
  }
  throw new Error('the provider never leads back')
}
