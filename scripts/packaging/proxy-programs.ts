import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packaging } from './check.ts'

/** The programs that the files of proxies are for, with these files unchanged except addresses and certificates. */

type Place = { dir: string; ports: number[]; app: number; port: number; certificate: string; key: string }
export type ProxyProgram = {
  name: string
  asksWhoCalls: boolean
  start(place: Place): Promise<ChildProcess>
}

export const nginx: ProxyProgram = {
  name: 'nginx',
  asksWhoCalls: true,
  async start({ dir, ports, app, port, certificate, key }) {
    const [first, second] = ports
    const site = (await readFile(packaging('nginx.conf'), 'utf8'))
      .replace('127.0.0.1:4041', `127.0.0.1:${first}`)
      .replace('127.0.0.1:4042', `127.0.0.1:${second}`)
      .replace('127.0.0.1:8080', `127.0.0.1:${app}`)
      .replace('listen 443', `listen 127.0.0.1:${port}`)
      .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
      .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`)
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (one) => `${one}_temp_path ${join(dir, one)};`,
    )
    const config = join(dir, 'nginx.conf')
    await writeFile(
      config,
      `user root; daemon off; pid ${join(dir, 'nginx.pid')}; error_log stderr;
       events {} http { access_log off; ${paths.join(' ')} ${site} }`,
    )
    return spawn('nginx', ['-c', config], { stdio: 'ignore' })
  },
}

export const caddy: ProxyProgram = {
  name: 'Caddy',
  asksWhoCalls: true,
  start: async ({ dir, ports, app, port, certificate, key }) =>
    spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', packaging('Caddyfile')], {
      env: {
        PATH: process.env.PATH,
        HOME: dir,
        XDG_DATA_HOME: dir,
        XDG_CONFIG_HOME: dir,
        SITE: `https://localhost:${port}`,
        NODES: ports.map((one) => `127.0.0.1:${one}`).join(' '),
        APP: `127.0.0.1:${app}`,
        TLS: `tls ${certificate} ${key}`,
        OPTIONS: 'auto_https disable_redirects',
      },
      stdio: 'ignore',
    }),
}

export const haproxy: ProxyProgram = {
  name: 'HAProxy',
  asksWhoCalls: false,
  async start({ dir, ports, port, certificate, key }) {
    const [first, second] = ports
    const both = join(dir, 'both.pem')
    await writeFile(both, `${await readFile(certificate, 'utf8')}${await readFile(key, 'utf8')}`)
    const config = join(dir, 'haproxy.cfg')
    await writeFile(
      config,
      (await readFile(packaging('haproxy.cfg'), 'utf8'))
        .replace('maxconn 20000', 'maxconn 1000')
        .replace(
          'bind :443 ssl crt /etc/haproxy/id.example.org.pem',
          `bind 127.0.0.1:${port} ssl crt ${both}`,
        )
        // This part is not checked here, and would ask servers elsewhere for their health.
        .replace(/^listen database\n(?: .*\n)+/m, '')
        .replace('10.0.0.21:4040', `127.0.0.1:${first}`)
        .replace('10.0.0.22:4040', `127.0.0.1:${second}`),
    )
    return spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' })
  },
}
