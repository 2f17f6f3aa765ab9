/**
 * Replaces `node-gyp-build`, which classic-level uses to find its compiled part. In the bundle, classic-level has no directory of its own
 * to search, so the compiled part is loaded from where the package is installed.
 */
module.exports = () => require("classic-level/binding.js");
