import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'

const here = fileURLToPath(new URL('.', import.meta.url))

/** Each of the two parts has its own files, so that either can be off: `--mode console`, `--mode pages`. */
export default defineConfig(({ mode, command }) => {
  const isPages = mode === 'pages'
  return {
    root: here,
    base: isPages ? '/pages/' : '/admin/',
    plugins: [theme(command === 'serve')],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      target: 'es2023',
      assetsDir: isPages ? '' : 'assets',
      assetsInlineLimit: 0,
      emptyOutDir: true,
      modulePreload: { polyfill: false },
      rolldownOptions: { input: `${here}${isPages ? 'pages' : 'index'}.html` },
    },
    server: {
      port: 4041,
      proxy: Object.fromEntries(
        ['/api', '/health', '/ready'].map((path) => [path, { target: serverUrl, ws: true }]),
      ),
    },
  }
})

const serverUrl = `http://127.0.0.1:${process.env.CELLKEEP_PORT ?? 4040}`

/** A small blocking script of its own: a chosen theme must be set before the first paint. */
function theme(isDev: boolean): Plugin {
  const source = readFileSync(`${here}theme.js`, 'utf8')
  return {
    name: 'theme',
    buildStart() {
      if (!isDev) this.emitFile({ type: 'asset', name: 'theme.js', source })
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle }) {
        if (isDev) return [{ tag: 'script', injectTo: 'head-prepend', children: source }]
        const made = Object.values(bundle ?? {}).find(({ fileName }) => /\btheme-[\w-]+\.js$/.test(fileName))
        const base = made?.fileName.startsWith('assets/') ? '/admin/' : '/pages/'
        return [{ tag: 'script', injectTo: 'head-prepend', attrs: { src: `${base}${made?.fileName}` } }]
      },
    },
  }
}
