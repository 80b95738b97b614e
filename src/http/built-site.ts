import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { App } from '../core/app.ts'
import { hasRecovery } from '../recovery/reset-link.ts'
import { version } from '../wire/version.ts'

/** One built file: its name in the folder, and the compressed forms beside it. */
export type BuiltFile = { file: string; type: string; encodings: ('br' | 'gz')[] }
/** What `npm run build:console` writes: the documents of the two parts, and their files by path. */
export type BuiltFiles = {
  documents: Record<'console' | 'pages', string>
  files: Record<'console' | 'pages', Record<string, BuiltFile>>
}

export type Form = { bytes: Uint8Array; etag: string }
export type Entry = { type: string; identity: Form; br?: Form; gzip?: Form; headers: Record<string, string> }

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const common = {
  vary: 'Accept-Encoding',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const fileHeaders = { ...common, 'cache-control': 'public, max-age=31536000, immutable' }
const documentHeaders = {
  ...common,
  'cache-control': 'no-cache',
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'permissions-policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=(), publickey-credentials-get=(self), publickey-credentials-create=(self)',
}

/** What the pages need to know about this server before their first call; public, the same for everybody. */
export function metaOf(config: App['config']): string {
  const { rpc_path, account_path, ws_path, audit_stream_path } = config
  return JSON.stringify({
    version,
    paths: { rpc: rpc_path, account: account_path, ws: ws_path, audit_stream: audit_stream_path },
    home: config.home_url ?? (config.console === 'on' ? '/admin' : '/'),
    password_min: config.password_min,
    invite_claim: config.invite_claim,
    features: {
      console: config.console === 'on',
      pages: config.pages,
      ws: config.ws,
      audit_stream: config.audit_stream,
      app_settings: config.app_settings,
      openrpc: config.openrpc === 'public',
      bootstrap: config.bootstrap === 'live',
      signup: config.signup,
      recovery: hasRecovery(config),
      mail: config.mail !== 'off',
      username_change: config.username_change === 'self',
      username_set: config.username_change !== 'off',
      actor_rename: config.actor_rename,
    },
  })
}

/** Reads the parts that are on, with `meta` in their documents. */
export async function readBuilt(folder: URL, isOn: Record<'console' | 'pages', boolean>, meta: string) {
  const { documents, files }: BuiltFiles = JSON.parse(await readFile(new URL('files.json', folder), 'utf8'))
  const parts = (['console', 'pages'] as const).filter((part) => isOn[part])
  const read = parts.flatMap((part) =>
    Object.entries(files[part]).map(async ([path, { file, type, encodings }]) => {
      const form = async (suffix: string) => formOf(await readFile(new URL(file + suffix, folder)))
      const entry: Entry = { type, identity: await form(''), headers: fileHeaders }
      if (encodings.includes('br')) entry.br = await form('.br')
      if (encodings.includes('gz')) entry.gzip = await form('.gz')
      return [path, entry] as const
    }),
  )
  const filled = (part: 'console' | 'pages'): Entry => {
    const text = documents[part].replace('%CELLKEEP%', () => meta.replace(/[&<>"]/g, entity))
    const bytes = Buffer.from(text)
    return {
      type: 'text/html; charset=utf-8',
      identity: formOf(bytes),
      br: formOf(brotliCompressSync(bytes)),
      gzip: formOf(gzipSync(bytes)),
      headers: documentHeaders,
    }
  }
  return {
    documents: Object.fromEntries(parts.map((part) => [part, filled(part)])) as Partial<
      Record<'console' | 'pages', Entry>
    >,
    files: new Map(await Promise.all(read)),
  }
}

const entity = (sign: string): string => `&#${sign.charCodeAt(0)};`

const formOf = (bytes: Uint8Array): Form => ({
  bytes,
  etag: `"${hash('sha256', bytes, 'base64url').slice(0, 22)}"`,
})
