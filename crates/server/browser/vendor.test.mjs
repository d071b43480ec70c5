// The third-party files match the manifest, and no other files are shipped.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";

const vendor = new URL("../web/vendor/", import.meta.url);
const read = (name) => readFileSync(new URL(name, vendor));
const manifest = JSON.parse(read("manifest.json"));

test("every vendored file matches its manifest entry", () => {
  const expected = new Set(["manifest.json", "packages.json"]);
  for (const { name, licence_file, files } of manifest) {
    expected.add(licence_file);
    assert.ok(read(licence_file).length > 500, `${name}: licence`);
    for (const { file, sha256, bytes, packed } of files) {
      expected.add(`${file}.gz`);
      const stored = read(`${file}.gz`);
      const plain = gunzipSync(stored);
      assert.deepEqual([stored.length, plain.length, createHash("sha256").update(plain).digest("hex")], [packed, bytes, sha256], file);
    }
  }
  assert.deepEqual(readdirSync(vendor).filter((name) => !expected.has(name)), []);
});

test("the manifest lists the packages of packages.json", () => {
  const expected = JSON.parse(read("packages.json")).packages.map(({ name, version }) => `${name}@${version}`);
  assert.deepEqual(manifest.map(({ name, version }) => `${name}@${version}`), expected);
});
