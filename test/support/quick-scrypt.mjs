// Loaded before a process of the gateway: its hashes of passwords cost a sixteenth of what they cost operators.
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { scrypt } = crypto;
crypto.scrypt = (password, salt, length, options, done) =>
  scrypt(password, salt, length, { ...options, N: options.N / 16 }, done);
syncBuiltinESMExports();
