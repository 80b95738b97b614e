import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { pagePaths } from '../config/rules/rules.ts'
import { testService } from '../testing/index.ts'
import type { BuiltFiles } from './built-site.ts'
import type { EdgeRequest } from './exchange.ts'
import { createSite } from './site.ts'

const script = 'let built = 1 // '.padEnd(200, 'x')
const built: BuiltFiles = {
  documents: {
    console: '<!doctype html><meta name="cellkeep" content="%CELLKEEP%"><title>Console</title>',
    pages: '<!doctype html><meta name="cellkeep" content="%CELLKEEP%"><title>Pages</title>',
  },
  files: {
    console: {
      '/admin/assets/main-abcd1234.js': {
        file: 'main.js',
        type: 'text/javascript; charset=utf-8',
        encodings: ['gz'],
      },
    },
    pages: {
      '/pages/main-abcd1234.js': { file: 'main.js', type: 'text/javascript; charset=utf-8', encodings: [] },
    },
  },
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ck-site-'))
  await writeFile(join(folder, 'files.json'), JSON.stringify(built))
  await writeFile(join(folder, 'main.js'), script)
  await writeFile(join(folder, 'main.js.gz'), (await import('node:zlib')).gzipSync(script))
})
afterAll(() => rm(folder, { recursive: true }))

const test = await serviceForFile({ console: 'on', pages: true })
const site = (config: { console?: 'on' | 'off'; pages?: boolean; home_url?: string } = {}) =>
  createSite(
    { log: test.service.app.log, config: { ...test.service.app.config, ...config } },
    pathToFileURL(`${folder}/`),
  )
const get = async (path: string, headers: Record<string, string> = {}, from = site()) => {
  const request = { path, header: (name: string) => headers[name] } as unknown as EdgeRequest
  const { status, headers: sent, body } = await from.answer(request)
  return {
    status,
    headers: sent,
    bytes: body as Uint8Array | null,
    text: body ? Buffer.from(body as Uint8Array).toString() : '',
  }
}
const asBrowser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const reasonOf = (path: string, from = site(), headers: Record<string, string> = {}) =>
  get(path, headers, from).then(
    ({ status }) => status,
    (error) => error.data.reason,
  )

describe('the console', () => {
  it('answers its document for every page of it, and its files by their names', async () => {
    for (const path of ['/admin', '/admin/', '/admin/people', '/admin/people/3f2a/access'])
      expect((await get(path, asBrowser)).text).toContain('<title>Console</title>')
    expect((await get('/admin/assets/main-abcd1234.js')).text).toBe(script)
  })

  it('answers its document below /admin to those who ask for HTML, and nothing to programs', async () => {
    for (const path of ['/admin', '/admin/']) expect(await reasonOf(path), path).toBe(200)
    for (const path of ['/admin/people', '/admin/nothing']) {
      expect((await get(path, asBrowser)).headers.vary).toBe('Accept, Accept-Encoding')
      for (const accept of [undefined, '*/*', 'application/json'])
        expect(await reasonOf(path, site(), accept ? { accept } : {}), `${path} ${accept}`).toBe('not_found')
    }
  })

  it('has nothing else: no dot file, no directory, no map, no other spelling', async () => {
    const paths = [
      '/admin/assets',
      '/admin/assets/',
      '/admin/assets/other-abcd1234.js',
      '/admin/.env',
      '/admin/a.js',
    ]
    for (const path of [
      ...paths,
      '/admin/main.js.map',
      '/admin/..%2f',
      '/admin/../api/rpc',
      '/admin//',
      '/admin/people/',
    ])
      expect(await reasonOf(path, site(), asBrowser), path).toBe('not_found')
    for (const path of ['/Admin', '/administrator', '/pages']) expect(site().answers(path), path).toBe(false)
  })

  it('allows nothing inline, no other host and no frame, and scripts only through trusted types', async () => {
    const { headers } = await get('/admin')
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    )
    expect(headers).toMatchObject({
      'cache-control': 'no-cache',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    for (const path of ['/admin/link', '/admin/callback/google'])
      expect((await get(path, asBrowser)).headers).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
      })
  })

  it('tells the page what is on, and only that', async () => {
    const { text } = await get('/admin', {}, site({ home_url: '/app?a="<&' }))
    const content = /content="([^"]*)"/.exec(text)?.[1] ?? ''
    const meta = JSON.parse(content.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)))
    expect(Object.keys(meta)).toEqual([
      'version',
      'paths',
      'home',
      'password_min',
      'invite_claim',
      'features',
    ])
    expect(meta).toMatchObject({ home: '/app?a="<&', features: { console: true, signup: true, ws: true } })
  })

  it('sends the smallest form that the client takes, each with an ETag of its own', async () => {
    const path = '/admin/assets/main-abcd1234.js'
    const packed = await get(path, { 'accept-encoding': 'br;q=0, gzip, deflate' })
    expect(gunzipSync(packed.bytes as Uint8Array).toString()).toBe(script)
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    const plain = await get(path, { 'accept-encoding': 'identity' })
    expect(plain.headers['content-encoding']).toBeUndefined()
    expect(plain.headers.etag).not.toBe(packed.headers.etag)
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    const document = await get('/admin', { 'accept-encoding': 'gzip, br' })
    expect(brotliDecompressSync(document.bytes as Uint8Array).toString()).toContain('<title>Console</title>')
    const again = await get('/admin', {
      'accept-encoding': 'br',
      'if-none-match': document.headers.etag as string,
    })
    expect([again.status, again.bytes]).toEqual([304, null])
    expect((await get('/admin', { 'if-none-match': document.headers.etag as string })).status).toBe(200)
  })

  it('is absent when it is off, and so are the pages', async () => {
    const off = site({ console: 'off' })
    expect([off.answers('/admin'), off.answers('/admin/people'), off.answers('/sign-in')]).toEqual([
      false,
      false,
      true,
    ])
    expect(await reasonOf('/admin', off)).toBe('not_found')
    const alone = site({ pages: false })
    expect(pagePaths.filter((path) => alone.answers(path))).toEqual([])
    expect(alone.answers('/pages/main-abcd1234.js')).toBe(false)
  })
})

describe('the pages', () => {
  it('answer one document, whatever is asked of whom', async () => {
    const texts = new Set<string>()
    for (const path of pagePaths) texts.add((await get(path)).text)
    expect(texts.size).toBe(1)
    expect((await get('/')).headers.vary).toBe('Accept, Accept-Encoding')
  })
})

describe('over HTTP', () => {
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(test.url + path, init)
    return {
      status: response.status,
      cookie: response.headers.get('set-cookie'),
      text: await response.text(),
    }
  }

  it('is the same for everybody, whatever the origin and the cookie', async () => {
    const headers = { cookie: 'svc_session=forged', origin: 'https://elsewhere.example' }
    expect(await ask('/admin', { headers })).toEqual(await ask('/admin'))
    expect((await ask('/admin', { headers })).cookie).toBeNull()
  })

  it('takes GET and HEAD only', async () => {
    expect((await ask('/admin', { method: 'POST' })).status).toBe(405)
    expect((await ask('/sign-in', { method: 'DELETE' })).status).toBe(405)
  })

  it('is off in a library that did not ask for it', async () => {
    await using bare = await testService()
    for (const path of ['/admin', '/sign-in', '/pages/x'])
      expect((await fetch(bare.url + path)).status).toBe(404)
    expect(bare.service.answers('/admin')).toBe(false)
  })

  it('refuses to start where another surface would be hidden', async () => {
    const started = testService({ console: 'on', rpc_path: '/admin/rpc' })
    await expect(started).rejects.toThrow('rpc_path must not be /admin or a path below it')
  })
})
