import type { z } from 'zod'
import type { FirebaseParams, ForeignPassword } from '../../src/import/formats.ts'

/**
 * Hashes of one password by the named libraries, from npm or from Debian 12's Python packages. Where no package writes
 * the whole hash, the library made the key, and the text has the format of the named system.
 */
export const foreignPassword = 'Zwölf ﬁsche, 42 € & a very long tail'

export const firebaseProject: FirebaseParams = {
  base64_signer_key:
    'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  base64_salt_separator: 'Bw==',
  rounds: 8,
  mem_cost: 14,
}

export const foreignHashes: readonly (readonly [made: string, hash: z.input<typeof ForeignPassword>])[] = [
  ['bcrypt 6.0.0 (npm)', '$2b$05$e3I3IsXjTp75VojlGQuSTelTrxq9E6OJfvTnvvyKMqeDjpbvI6i/i'],
  ['bcrypt 6.0.0 (npm), $2a$', '$2a$04$espAG53idgHXcTqajeeVDuiR5861FPq9kxcPd7zlBKZa7nCODenbm'],
  [
    'better-auth 1.7.25 (npm)',
    'a79764903a7fb94bc4ce36934ed04fc3:8a7f2e41cb83a9a156c2dd849d2133ce227b669cc6957d0e14e5d2f42e5996fa8f42c7cc1e25e401d799257ece13e31a2fd1e7fb0b641ed4fb3e058851d12ba3',
  ],
  [
    'firebase-scrypt 2.2.0 (npm)',
    {
      hash: 'QOZHOqF8iSQ9PjqAedpkPtmRcSuLKUAy3Nlbh6bz9FyJBbomCIA7kuliNED1c0YvAw4wg0kmn63m6l2WSCQReg==',
      salt: 'MDEyMzQ1Njc4OWFi',
    },
  ],
  [
    'Django 3.2.25, PBKDF2',
    'pbkdf2_sha256$2000$ITvKbPOxvd3TOYGKvrlIwk$Ja+corIJiMflPTBOU+S/J7pwZTzDN4OkzYOPKea3Pm0=',
  ],
  ['Django 3.2.25, PBKDF2 SHA1', 'pbkdf2_sha1$2000$2OjOBZtoIOjl1yUsk1I3e5$UsPZu+d3pfUtdoggZfyWwIDX4yM='],
  [
    'Django 3.2.25, Argon2',
    'argon2$argon2id$v=19$m=1024,t=2,p=8$bkFudGRKa0RwTnZ1WjdvcEJtOWJpUg$KUlQCRFKNTsDSgNgv5CIqw',
  ],
  ['Django 3.2.25, bcrypt', 'bcrypt$$2b$04$ccTfARlMB3Xq0y5w7DcsKOT3wCkdxp9Ddd45TEGkECBxVeNCoFe7y'],
  [
    'Django 3.2.25, bcrypt SHA256',
    'bcrypt_sha256$$2b$04$j3cEL7WP.9cjgzXfnZ1p3eSxbT2yh8vNgdciybPWH72zMKNb.lyjO',
  ],
  [
    'passlib 1.7.4, pbkdf2_sha256',
    '$pbkdf2-sha256$2000$4ByDcM6Z835P6X2PcY6Rsg$b2h5mTPvNAuAQjcaleeZjcr40bd/l2PGfqi/zf.mYqM',
  ],
  [
    'passlib 1.7.4, pbkdf2_sha512',
    '$pbkdf2-sha512$2000$39tba20tRWhtLYVwTglBiA$k02GRln.4I9ZSILFWUi6Ej1SW8trpxZXDVYCjeMY67Wr3C8vBW2ot0yHwJebXrKE/o2AIgZCrRnCntii/esf1g',
  ],
  [
    'passlib 1.7.4, scrypt',
    '$scrypt$ln=10,r=8,p=1$PMfY+5/zXktJaY1xbq01pg$pf1DYiYfvVF9TCoSfZSiS1riejRgbHfprP28uzEyZpc',
  ],
  ['passlib 1.7.4, bcrypt $2y$', '$2y$04$Cqumjt9uyPAAOxhX7KiOfenS9Cm9HPm4UIuyt0aqsKJ3.DIXk8ydO'],
  [
    'argon2 0.45.1 (npm)',
    '$argon2id$v=19$m=1024,p=2,t=3$Z6JdVUnI5RI/TeHYUfzxFA$h5A1vvybOB+cVS0R2YLqFh1n9QSgaROHY0jXB+ntpa4',
  ],
  ['argon2-cffi 21.1.0, i', '$argon2i$v=19$m=1024,t=3,p=2$VqAlSyX1AP3WYVlFkFTQ6w$JUEfPGUKZPnHnEUeX9JOFQ'],
  ['argon2-cffi 21.1.0, d', '$argon2d$v=19$m=1024,t=3,p=2$2uV8H7vburK/MScVnaIo0Q$pYY38XGcDKON4k6/psxwsw'],
  ['argon2-cffi 21.1.0, id', '$argon2id$v=19$m=1024,t=3,p=2$xJDyf+FS+ajHKJBsAUQTBw$zQ1O/T5aRVsEPLBQwKAHQw'],
  [
    'argon2-cffi, version 16',
    '$argon2i$v=16$m=512,t=2,p=1$c2FsdHNhbHRzYWx0MTIzNA$AEwMzrF49A5ZK8o8JeXJMjCLkYot2PmYfPDQT+yB7hE',
  ],
  [
    'the form of Django 4, scrypt, by hashlib',
    'scrypt$16384$nacl4django12$8$1$fBcahboWd4sSK4mO1NwSXvTBtIN0ReLEljCUbAFZRi7e9HoRsgkSNPRvIbblNN9CwnBLsMZqpbUha4x8LQD05Q==',
  ],
  [
    'the form of Keycloak, pbkdf2, by hashlib',
    {
      credentialData: '{"hashIterations": 2000, "algorithm": "pbkdf2", "additionalParameters": {}}',
      secretData:
        '{"value": "8ylxkfGLh1jXnCKq8g9MiWLCZbo=", "salt": "AQJrZXljbG9hay1zYWx0AA==", "additionalParameters": {}}',
    },
  ],
  [
    'the form of Keycloak, pbkdf2-sha256, by hashlib',
    {
      credentialData: '{"hashIterations": 2000, "algorithm": "pbkdf2-sha256", "additionalParameters": {}}',
      secretData:
        '{"value": "rslMnbUlDdVY8hJbACYe7KjvUXMgxlt2o1WFWV7vwZjloc1+3HS+NJcgVff39HBYj06NBynI4zR2Ol1v+aPBSA==", "salt": "AQJrZXljbG9hay1zYWx0AA==", "additionalParameters": {}}',
    },
  ],
  [
    'the form of Keycloak, pbkdf2-sha512, by hashlib',
    {
      credentialData: '{"hashIterations": 2000, "algorithm": "pbkdf2-sha512", "additionalParameters": {}}',
      secretData:
        '{"value": "f/StLfFUHbOzMACzJ/jbm9vNowq/YSqWuBoA95St9/V3DSFe5oHQJcluSOz8cTTBCyzwzg3/Np+0oIsGhvmbDg==", "salt": "AQJrZXljbG9hay1zYWx0AA==", "additionalParameters": {}}',
    },
  ],
  [
    'the form of Keycloak, argon2, by argon2-cffi',
    {
      credentialData:
        '{"hashIterations": 5, "algorithm": "argon2", "additionalParameters": {"hashLength": ["32"], "memory": ["7168"], "type": ["id"], "version": ["1.3"], "parallelism": ["1"]}}',
      secretData:
        '{"value": "7xcsPX/B2ZAYIt74TWBMkxMsneH1xTJZOeIQjMjCRbg=", "salt": "MDEyMzQ1Njc4OWFiY2RlZg==", "additionalParameters": {}}',
    },
  ],
]
