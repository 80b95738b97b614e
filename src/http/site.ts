import { pagePaths } from '../config/rules.ts'
import type { App } from '../core/app.ts'
import { refusal } from '../errors.ts'
import { type Entry, type Form, metaOf, readBuilt } from './built-site.ts'
import type { EdgeReply, EdgeRequest } from './exchange.ts'

/** Below /admin a path is a page of the console, unless it names a file. The console itself says that a page is unknown. */
const consolePath = /^\/admin(\/[A-Za-z0-9_-]+)*$/

const builtFolder = new URL('../../dist/console/', import.meta.url)

/** The console and the pages for people: the same bytes for everybody, read once; no request reaches the disk. */
export function createSite({ config, log }: Pick<App, 'config' | 'log'>, folder = builtFolder) {
  const isOn = { console: config.console === 'on', pages: config.pages }
  const built = isOn.console || isOn.pages ? readBuilt(folder, isOn, metaOf(config)) : undefined
  built?.catch(() =>
    log.warn(
      { event: 'console_not_built', folder: folder.pathname },
      'the console is not built; `npm run build:console` builds it',
    ),
  )

  const documentOf = (path: string): 'console' | 'pages' | undefined => {
    if (isOn.pages && pagePaths.includes(path)) return 'pages'
    const isConsole = path === '/admin/' || (consolePath.test(path) && !/^\/admin\/assets(\/|$)/.test(path))
    return isOn.console && isConsole ? 'console' : undefined
  }
  const answers = (path: string): boolean =>
    (isOn.console && (path === '/admin' || path.startsWith('/admin/'))) ||
    (isOn.pages && (path.startsWith('/pages/') || pagePaths.includes(path)))

  async function answer({ path, header }: EdgeRequest): Promise<EdgeReply> {
    const read = await built?.catch(() => undefined)
    const name = documentOf(path)
    const entry = name ? read?.documents[name] : read?.files.get(path)
    if (!entry) throw refusal('not_found')
    const coding = codingOf(entry, header('accept-encoding'))
    const { bytes, etag } = entry[coding] as Form
    const headers: Record<string, string> = {
      ...entry.headers,
      ...(path === '/' && { vary: 'Accept, Accept-Encoding' }),
      ...(/^\/admin\/(link|callback)(\/|$)/.test(path) && once),
      etag,
      ...(coding !== 'identity' && { 'content-encoding': coding === 'br' ? 'br' : 'gzip' }),
    }
    if (isKnown(header('if-none-match'), etag)) return { status: 304, headers, body: null }
    return { status: 200, headers: { ...headers, 'content-type': entry.type }, body: bytes }
  }
  return { answers, answer }
}

/** For pages reached from links in messages and from providers: their addresses contain secrets and must not leak. */
const once = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** The smallest encoding that the client accepts. */
function codingOf(entry: Entry, sent = ''): 'br' | 'gzip' | 'identity' {
  const taken = new Set(
    sent
      .toLowerCase()
      .split(',')
      .map((one) => one.split(';').map((part) => part.trim()))
      .filter(([, weight]) => !/^q=0(\.0*)?$/.test(weight ?? ''))
      .map(([coding]) => coding),
  )
  return (['br', 'gzip'] as const).find((coding) => entry[coding] && taken.has(coding)) ?? 'identity'
}

export const isKnown = (sent: string | undefined, etag: string): boolean =>
  (sent?.split(',') ?? []).some((one) => ['*', etag, `W/${etag}`].includes(one.trim()))
