import { pagePaths } from '../config/rules/rules.ts'
import type { App } from '../core/app.ts'
import { refusal } from '../errors.ts'
import { type Entry, type Form, metaOf, readBuilt } from './built-site.ts'
import { type EdgeReply, type EdgeRequest, matchesEtag } from './exchange.ts'
import { wantsPage } from './home.ts'

/**
 * Below /admin, browsers get the console for any path that cannot name a file, and the console says whether it has such a
 * page. Programs, which do not ask for HTML, find nothing there.
 */
const isBelow = (path: string): boolean =>
  /^\/admin(\/[A-Za-z0-9_-]+)+$/.test(path) && !/^\/admin\/assets(\/|$)/.test(path)

const builtFolder = new URL('../../dist/console/', import.meta.url)

/** The console and the pages for people: the same bytes for everybody, read once; no request reaches the disk. */
export function createSite({ config, log }: Pick<App, 'config' | 'log'>, folder = builtFolder) {
  const isOn = { console: config.console === 'on', pages: config.pages }
  const built = isOn.console || isOn.pages ? readBuilt(folder, isOn, metaOf(config)) : undefined
  built?.catch(() =>
    log.warn(
      { event: 'console_not_built', folder: folder.pathname },
      'the console is not built; run `npm run build:console`',
    ),
  )

  const documentOf = (request: EdgeRequest): 'console' | 'pages' | undefined => {
    const { path } = request
    if (isOn.pages && pagePaths.includes(path)) return 'pages'
    const isConsole = path === '/admin' || path === '/admin/' || (isBelow(path) && wantsPage(request))
    return isOn.console && isConsole ? 'console' : undefined
  }
  const answers = (path: string): boolean =>
    (isOn.console && (path === '/admin' || path.startsWith('/admin/'))) ||
    (isOn.pages && (path.startsWith('/pages/') || pagePaths.includes(path)))

  async function answer(request: EdgeRequest): Promise<EdgeReply> {
    const { path, header } = request
    const read = await built?.catch(() => undefined)
    const name = documentOf(request)
    const entry = name ? read?.documents[name] : read?.files.get(path)
    if (!entry) throw refusal('not_found')
    const coding = codingOf(entry, header('accept-encoding'))
    const { bytes, etag } = entry[coding] as Form
    const headers: Record<string, string> = {
      ...entry.headers,
      ...((path === '/' || isBelow(path)) && { vary: 'Accept, Accept-Encoding' }),
      ...(/^\/admin\/(link|callback)(\/|$)/.test(path) && once),
      etag,
      ...(coding !== 'identity' && { 'content-encoding': coding === 'br' ? 'br' : 'gzip' }),
    }
    if (matchesEtag(header('if-none-match'), etag)) return { status: 304, headers, body: null }
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
